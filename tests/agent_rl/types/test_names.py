import pytest

from agent_rl.types.names import resolve

MEMBERS = {"uniform": 1, "dynamic_filter": 2}


def test_a_name_from_the_map():
    assert resolve("curriculum.name", "uniform", MEMBERS) == 1


def test_a_dotted_path_for_ones_own():
    assert resolve("curriculum.name", "math:pi", MEMBERS) == pytest.approx(3.141592653589793)


def test_an_unknown_name_is_answered_with_the_nearest_and_all_choices():
    with pytest.raises(ValueError, match=r"Did you mean 'uniform'\? Choose one of dynamic_filter, uniform"):
        resolve("curriculum.name", "unifrom", MEMBERS)


def test_a_dotted_path_that_is_not_there_says_why():
    with pytest.raises(ValueError, match="cannot be imported"):
        resolve("curriculum.name", "math:tau_squared", MEMBERS)

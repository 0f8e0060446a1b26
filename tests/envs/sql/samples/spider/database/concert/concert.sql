CREATE TABLE singer (singer_id INT PRIMARY KEY, name TEXT, country TEXT, age INT);
CREATE TABLE stadium (stadium_id INT PRIMARY KEY, capacity INT);
INSERT INTO singer VALUES (1, 'Joe', 'Netherlands', 52), (2, 'Tim', 'US', 32), (3, 'Ann', 'France', 29), (4, 'Rose', 'France', 41);
INSERT INTO stadium VALUES (1, 4000), (2, 2000), (3, 9000), (4, 700);

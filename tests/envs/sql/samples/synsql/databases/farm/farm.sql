CREATE TABLE fields (field_id INTEGER PRIMARY KEY, field_name TEXT, crop TEXT, area REAL);
INSERT INTO fields VALUES (1, 'north', 'W', 2.5), (2, 'south', 'B', 4.0), (3, 'east', 'W', 1.25);

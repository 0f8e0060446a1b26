CREATE TABLE singer (singer_id INT PRIMARY KEY, name TEXT, country TEXT, age INT);
CREATE TABLE stadium (stadium_id INT PRIMARY KEY, capacity INT);
INSERT INTO singer VALUES (1, 'Bo', 'Peru', 18), (2, 'Cy', 'Chad', 64);
INSERT INTO stadium VALUES (1, 10), (2, 20), (3, 30), (4, 40);

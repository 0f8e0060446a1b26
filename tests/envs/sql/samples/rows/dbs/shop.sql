CREATE TABLE stock (id INTEGER PRIMARY KEY, item TEXT, amount INT CHECK (amount >= 0));
INSERT INTO stock VALUES (1, 'nail', 10), (2, 'screw', 4), (3, 'bolt', 0);

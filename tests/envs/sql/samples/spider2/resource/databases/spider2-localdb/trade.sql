CREATE TABLE sales (sale_id INTEGER PRIMARY KEY, product TEXT, price REAL);
INSERT INTO sales VALUES (1, 'pear', 1.0), (2, 'pear', 2.0), (3, 'pear', 2.0), (4, 'plum', 5.0), (5, 'fig', NULL), (6, 'plum', 5.0);

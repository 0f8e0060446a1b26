SELECT product, COUNT(*) FROM sales GROUP BY product ORDER BY product

CREATE TABLE schools (CDSCode TEXT NOT NULL PRIMARY KEY, School TEXT, County TEXT, Charter INTEGER);
CREATE TABLE frpm (CDSCode TEXT NOT NULL PRIMARY KEY REFERENCES schools (CDSCode), `County Name` TEXT, `Free Meal Count` REAL, Enrollment REAL);
INSERT INTO schools VALUES ('01', 'Envision', 'Alameda', 1), ('02', 'Aspire', 'Alameda', 1), ('03', 'Oakdale', 'Fresno', 0), ('04', 'Summit', 'Fresno', 1);
INSERT INTO frpm VALUES ('01', 'Alameda', 90, 120), ('02', 'Alameda', 20, 100), ('03', 'Fresno', 95, 100), ('04', 'Fresno', 61, 110);

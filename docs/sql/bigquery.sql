-- fold: rows whose fingerprint an earlier id has, and the first of these ids
SELECT lang, id, first_id AS first
FROM (SELECT lang, id AS id, MIN(id) OVER (PARTITION BY lang, hi, lo) AS first_id FROM docs) t
WHERE id <> first_id;

-- pairs: all pairs of first ids within 3 bits
WITH f AS (
  SELECT lang, MIN(id) AS id, hi, lo FROM docs GROUP BY lang, hi, lo
),
band AS (
  SELECT 0 AS k, 0 AS p, CAST(-4294967296 AS INT64) AS m1, CAST(0 AS INT64) AS m2
  UNION ALL SELECT 1 AS k, 0 AS p, CAST(4294967295 AS INT64) AS m1, CAST(0 AS INT64) AS m2
  UNION ALL SELECT 2 AS k, 0 AS p, CAST(0 AS INT64) AS m1, CAST(-4294967296 AS INT64) AS m2
  UNION ALL SELECT 3 AS k, 0 AS p, CAST(0 AS INT64) AS m1, CAST(4294967295 AS INT64) AS m2
),
keyed AS (
  SELECT f.lang, f.id, f.hi, f.lo, m.k, (f.hi & m.m1) AS v1, (f.lo & m.m2) AS v2
  FROM f CROSS JOIN band m
),
counted AS (
  SELECT lang, id, hi, lo, k, v1, v2, COUNT(*) OVER (PARTITION BY lang, k, v1, v2) AS n FROM keyed
),
part AS (
  SELECT 0 AS k, 1 AS p, CAST(4294967040 AS INT64) AS m1, CAST(0 AS INT64) AS m2
  UNION ALL SELECT 0 AS k, 2 AS p, CAST(255 AS INT64) AS m1, CAST(-281474976710656 AS INT64) AS m2
  UNION ALL SELECT 0 AS k, 3 AS p, CAST(0 AS INT64) AS m1, CAST(281474959933440 AS INT64) AS m2
  UNION ALL SELECT 0 AS k, 4 AS p, CAST(0 AS INT64) AS m1, CAST(16777215 AS INT64) AS m2
  UNION ALL SELECT 1 AS k, 1 AS p, CAST(-1099511627776 AS INT64) AS m1, CAST(0 AS INT64) AS m2
  UNION ALL SELECT 1 AS k, 2 AS p, CAST(1095216660480 AS INT64) AS m1, CAST(-281474976710656 AS INT64) AS m2
  UNION ALL SELECT 1 AS k, 3 AS p, CAST(0 AS INT64) AS m1, CAST(281474959933440 AS INT64) AS m2
  UNION ALL SELECT 1 AS k, 4 AS p, CAST(0 AS INT64) AS m1, CAST(16777215 AS INT64) AS m2
  UNION ALL SELECT 2 AS k, 1 AS p, CAST(-1099511627776 AS INT64) AS m1, CAST(0 AS INT64) AS m2
  UNION ALL SELECT 2 AS k, 2 AS p, CAST(1099511562240 AS INT64) AS m1, CAST(0 AS INT64) AS m2
  UNION ALL SELECT 2 AS k, 3 AS p, CAST(65535 AS INT64) AS m1, CAST(4278190080 AS INT64) AS m2
  UNION ALL SELECT 2 AS k, 4 AS p, CAST(0 AS INT64) AS m1, CAST(16777215 AS INT64) AS m2
  UNION ALL SELECT 3 AS k, 1 AS p, CAST(-1099511627776 AS INT64) AS m1, CAST(0 AS INT64) AS m2
  UNION ALL SELECT 3 AS k, 2 AS p, CAST(1099511562240 AS INT64) AS m1, CAST(0 AS INT64) AS m2
  UNION ALL SELECT 3 AS k, 3 AS p, CAST(65535 AS INT64) AS m1, CAST(-72057594037927936 AS INT64) AS m2
  UNION ALL SELECT 3 AS k, 4 AS p, CAST(0 AS INT64) AS m1, CAST(72057589742960640 AS INT64) AS m2
),
s AS (
  SELECT lang, id, hi, lo, k, v1, v2, 0 AS p, CAST(0 AS INT64) AS w1, CAST(0 AS INT64) AS w2 FROM counted WHERE n BETWEEN 2 AND 4096
  UNION ALL
  SELECT c.lang AS lang, c.id AS id, c.hi AS hi, c.lo AS lo, c.k AS k, c.v1 AS v1, c.v2 AS v2, m.p AS p, (c.hi & m.m1) AS w1, (c.lo & m.m2) AS w2
  FROM counted c JOIN part m ON c.k = m.k WHERE c.n > 4096
),
candidate AS (
  SELECT x.lang AS lang, x.id AS a, y.id AS b, BIT_COUNT(x.hi ^ y.hi) + BIT_COUNT(x.lo ^ y.lo) AS distance
  FROM s x JOIN s y ON x.lang = y.lang AND x.k = y.k AND x.v1 = y.v1 AND x.v2 = y.v2
    AND x.p = y.p AND x.w1 = y.w1 AND x.w2 = y.w2 AND x.id < y.id
)
SELECT DISTINCT lang, a, b, distance FROM candidate WHERE distance <= 3;

-- heavy values: values of keys that more than 4096 fingerprints share, the largest first
WITH f AS (
  SELECT lang, MIN(id) AS id, hi, lo FROM docs GROUP BY lang, hi, lo
),
band AS (
  SELECT 0 AS k, 0 AS p, CAST(-4294967296 AS INT64) AS m1, CAST(0 AS INT64) AS m2
  UNION ALL SELECT 1 AS k, 0 AS p, CAST(4294967295 AS INT64) AS m1, CAST(0 AS INT64) AS m2
  UNION ALL SELECT 2 AS k, 0 AS p, CAST(0 AS INT64) AS m1, CAST(-4294967296 AS INT64) AS m2
  UNION ALL SELECT 3 AS k, 0 AS p, CAST(0 AS INT64) AS m1, CAST(4294967295 AS INT64) AS m2
),
keyed AS (
  SELECT f.lang, f.id, f.hi, f.lo, m.k, (f.hi & m.m1) AS v1, (f.lo & m.m2) AS v2
  FROM f CROSS JOIN band m
)
SELECT lang, k, v1, v2, COUNT(*) AS n, MIN(id) AS id
FROM keyed GROUP BY lang, k, v1, v2
HAVING COUNT(*) > 4096 ORDER BY n DESC;

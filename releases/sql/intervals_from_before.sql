-- What is known from before: moves, and the splits there are. Their clocks may have stepped back.
INSERT INTO releases_aliasinterval (
    alias_id, revision_id, version_id, valid_from, valid_to, basis_points, salt, allow, deny, shadow_basis_points)
SELECT alias_id, id, version_id, begins, lead(begins) OVER (PARTITION BY alias_id ORDER BY number), 0, '', '{}', '{}', 0
FROM (
    SELECT *, max(at) OVER (PARTITION BY alias_id ORDER BY number) + number * interval '1 microsecond' AS begins
    FROM releases_aliasrevision
) told
ORDER BY alias_id, number;

CREATE TEMPORARY TABLE split_intervals ON COMMIT DROP AS
SELECT i.id, i.alias_id, i.revision_id, i.version_id,
       greatest(s.changed_at, i.valid_from + interval '1 microsecond') AS begins,
       s.candidate_id, s.basis_points, s.salt, s.allow, s.deny, s.shadow_id, s.shadow_basis_points
FROM releases_aliasinterval i JOIN releases_aliassplit s ON s.alias_id = i.alias_id WHERE i.valid_to IS NULL;
UPDATE releases_aliasinterval i SET valid_to = n.begins FROM split_intervals n WHERE n.id = i.id;
INSERT INTO releases_aliasinterval (
    alias_id, revision_id, version_id, valid_from, candidate_id, basis_points, salt, allow, deny, shadow_id,
    shadow_basis_points)
SELECT alias_id, revision_id, version_id, begins, candidate_id, basis_points, salt, allow, deny, shadow_id,
       shadow_basis_points
FROM split_intervals;

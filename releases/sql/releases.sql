-- What a release does never changes; its state moves only along the allowed moves, and every change counts once. It
-- starts with the approvals that its plan asks for, and is promoted when every step has passed or was skipped and the
-- alias stands at the candidate.
CREATE FUNCTION release_may_move(was text, becomes text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT (was || '>' || becomes) IN (
        'pending>prewarming', 'pending>shadowing', 'pending>progressing',
        'pending>promoted', 'pending>aborted', 'pending>rolled_back',
        'prewarming>shadowing', 'prewarming>progressing', 'prewarming>paused',
        'prewarming>promoted', 'prewarming>aborted', 'prewarming>rolled_back',
        'shadowing>progressing', 'shadowing>paused',
        'shadowing>promoted', 'shadowing>aborted', 'shadowing>rolled_back',
        'progressing>paused', 'progressing>promoted', 'progressing>aborted', 'progressing>rolled_back',
        'paused>prewarming', 'paused>shadowing', 'paused>progressing',
        'paused>promoted', 'paused>aborted', 'paused>rolled_back',
        'promoted>rolled_back')
$$;
CREATE FUNCTION release_is_over(state text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT state IN ('promoted', 'aborted', 'rolled_back')
$$;
CREATE FUNCTION release_refuse(rule text, message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', message USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = rule;
END $$;

CREATE FUNCTION release_begins() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_alias releases_alias%ROWTYPE;
    v_base bigint;
    v_last integer;
BEGIN
    -- Two that begin take turns, and each takes turns with a move of the alias and with a change of its split.
    SELECT * INTO v_alias FROM releases_alias WHERE id = NEW.alias_id FOR NO KEY UPDATE;
    SELECT base_model_id INTO v_base FROM registry_adapter WHERE id = v_alias.adapter_id;
    SELECT coalesce(max(number), 0) INTO v_last FROM releases_release WHERE alias_id = NEW.alias_id;
    IF (NEW.state, NEW.step, NEW.revision, NEW.started_at, NEW.ended_at, NEW.paused_state, NEW.pause_kind)
        IS DISTINCT FROM ('pending', 0, 1, NULL::timestamptz, NULL::timestamptz, '', '')
    THEN
        PERFORM release_refuse('release_begins_pending', 'a release begins as pending, at revision 1');
    END IF;
    IF NEW.number <> v_last + 1 THEN
        PERFORM release_refuse('release_number_contiguous', format('release %s does not follow on %s', NEW.number, v_last));
    END IF;
    IF (NEW.stable_id, NEW.stable_revision) IS DISTINCT FROM (v_alias.version_id, v_alias.revision) THEN
        PERFORM release_refuse('release_begins_where_alias_is', 'a release begins at the version that its alias points to');
    END IF;
    IF NOT alias_split_target_fits(NEW.candidate_id, v_alias.tenant_id, v_base) THEN
        PERFORM release_refuse(
            'release_candidate_servable', 'the candidate of a release is an approved version of its tenant and base model');
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER release_begins BEFORE INSERT ON releases_release FOR EACH ROW EXECUTE FUNCTION release_begins();

CREATE FUNCTION release_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_changed boolean;
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM release_refuse('release_stays', 'a release is never deleted');
    END IF;
    IF (NEW.id, NEW.alias_id, NEW.number, NEW.stable_id, NEW.stable_revision, NEW.candidate_id, NEW.template_id,
        NEW.plan, NEW.digest, NEW.reason, NEW.made_by_id, NEW.made_at)
        IS DISTINCT FROM
       (OLD.id, OLD.alias_id, OLD.number, OLD.stable_id, OLD.stable_revision, OLD.candidate_id, OLD.template_id,
        OLD.plan, OLD.digest, OLD.reason, OLD.made_by_id, OLD.made_at)
    THEN
        PERFORM release_refuse('release_immutable', 'what a release does never changes');
    END IF;
    IF NEW.state <> OLD.state AND NOT release_may_move(OLD.state, NEW.state) THEN
        PERFORM release_refuse('release_moves', format('a release does not move from %s to %s', OLD.state, NEW.state));
    END IF;
    v_changed := (NEW.state, NEW.step, NEW.paused_state, NEW.pause_kind, NEW.started_at, NEW.ended_at)
        IS DISTINCT FROM (OLD.state, OLD.step, OLD.paused_state, OLD.pause_kind, OLD.started_at, OLD.ended_at);
    IF NEW.revision NOT IN (OLD.revision, OLD.revision + 1) OR (v_changed AND NEW.revision = OLD.revision) THEN
        PERFORM release_refuse('release_revision_contiguous', 'every change of a release counts once');
    END IF;
    IF v_changed AND release_is_over(OLD.state) AND NEW.state = OLD.state OR NEW.step < OLD.step THEN
        PERFORM release_refuse('release_goes_on', 'a release that is over stays as it is, and no step comes again');
    END IF;
    IF (NEW.state = 'paused') IS DISTINCT FROM (NEW.pause_kind <> '')
       OR (NEW.state = 'paused') IS DISTINCT FROM (NEW.paused_state <> '')
       OR NEW.paused_state NOT IN ('', 'prewarming', 'shadowing', 'progressing')
    THEN
        PERFORM release_refuse('release_pause_said', 'a release that is paused, and no other, says why and from what');
    END IF;
    IF release_is_over(NEW.state) IS DISTINCT FROM (NEW.ended_at IS NOT NULL) THEN
        PERFORM release_refuse('release_end_said', 'a release that is over, and no other, says since when');
    END IF;
    IF NEW.state <> OLD.state THEN
        PERFORM release_guard_move(OLD, NEW);
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION release_guard_move(old releases_release, new releases_release) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF old.state = 'pending' AND new.state NOT IN ('aborted', 'rolled_back') AND (
        SELECT count(*) FROM releases_releaseapproval a WHERE a.release_id = new.id AND a.digest = new.digest
    ) < (new.plan ->> 'approvals')::integer
    THEN
        PERFORM release_refuse('release_approved', 'a release starts with the approvals that its plan asks for');
    END IF;
    IF new.state IN ('prewarming', 'shadowing', 'progressing') AND NOT EXISTS (
        SELECT 1 FROM releases_releasestep s WHERE s.release_id = new.id AND s.index IN (new.step, new.step - 1)
        AND new.state = CASE s.kind WHEN 'prewarm' THEN 'prewarming' WHEN 'evaluate' THEN 'prewarming'
                                    WHEN 'shadow' THEN 'shadowing' ELSE 'progressing' END)
    THEN
        PERFORM release_refuse('release_state_of_step', format('no step that runs or ran last is %s', new.state));
    END IF;
    IF release_is_over(new.state) AND EXISTS (
        SELECT 1 FROM releases_releasestep s WHERE s.release_id = new.id AND s.state IN ('waiting', 'running'))
    THEN
        PERFORM release_refuse('release_steps_end_first', 'a release that is over has no step before it');
    END IF;
    IF new.state = 'promoted' AND EXISTS (
        SELECT 1 FROM releases_releasestep s WHERE s.release_id = new.id AND s.state NOT IN ('passed', 'skipped'))
    THEN
        PERFORM release_refuse('release_steps_passed', 'a release is promoted when every step has passed or was skipped');
    END IF;
    IF new.state = 'promoted' AND NOT EXISTS (
        SELECT 1 FROM releases_alias a WHERE a.id = new.alias_id AND a.version_id = new.candidate_id)
    THEN
        PERFORM release_refuse('release_moves_its_alias', 'a release is promoted with its alias at the candidate');
    END IF;
END $$;
CREATE TRIGGER release_guard BEFORE UPDATE OR DELETE ON releases_release
    FOR EACH ROW EXECUTE FUNCTION release_guard();

-- Steps are made with their release, run one after the other, and begin again only as another attempt.
CREATE FUNCTION release_step_begins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM releases_release r WHERE r.id = NEW.release_id AND r.state = 'pending' AND r.revision = 1)
       OR NEW.index <> (SELECT count(*) FROM releases_releasestep s WHERE s.release_id = NEW.release_id)
       OR (NEW.state, NEW.attempt, NEW.started_at, NEW.ended_at)
          IS DISTINCT FROM ('waiting', 0, NULL::timestamptz, NULL::timestamptz)
    THEN
        PERFORM release_refuse('release_step_made_with_it', 'the steps of a release are made with it, one after the other');
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER release_step_begins BEFORE INSERT ON releases_releasestep
    FOR EACH ROW EXECUTE FUNCTION release_step_begins();

CREATE FUNCTION release_step_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_begins boolean;
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM release_refuse('release_step_stays', 'a step of a release is never deleted');
    END IF;
    IF (NEW.id, NEW.release_id, NEW.index, NEW.kind, NEW.spec)
        IS DISTINCT FROM (OLD.id, OLD.release_id, OLD.index, OLD.kind, OLD.spec)
    THEN
        PERFORM release_refuse('release_step_immutable', 'what a step of a release does never changes');
    END IF;
    IF OLD.state IN ('passed', 'skipped', 'ended') THEN
        PERFORM release_refuse('release_step_over', 'a step that is over stays as it is');
    END IF;
    IF NEW.state <> OLD.state AND (OLD.state || '>' || NEW.state) NOT IN (
        'waiting>running', 'waiting>skipped', 'waiting>ended', 'running>passed', 'running>skipped', 'running>ended')
    THEN
        PERFORM release_refuse('release_step_moves', format('a step does not move from %s to %s', OLD.state, NEW.state));
    END IF;
    v_begins := NEW.attempt <> OLD.attempt;
    IF (NEW.started_at IS DISTINCT FROM OLD.started_at) IS DISTINCT FROM v_begins
       OR (v_begins AND (NEW.state <> 'running' OR NEW.attempt <> OLD.attempt + 1 OR NEW.started_at IS NULL))
       OR (OLD.state = 'waiting' AND NEW.state = 'running' AND NOT v_begins)
    THEN
        PERFORM release_refuse('release_step_attempts', 'a step begins once per attempt');
    END IF;
    IF (NEW.state IN ('passed', 'skipped', 'ended')) IS DISTINCT FROM (NEW.ended_at IS NOT NULL) THEN
        PERFORM release_refuse('release_step_end_said', 'a step that is over, and no other, says since when');
    END IF;
    IF v_begins AND (
        EXISTS (SELECT 1 FROM releases_releasestep s
                WHERE s.release_id = NEW.release_id AND s.index < NEW.index AND s.state NOT IN ('passed', 'skipped'))
        OR EXISTS (SELECT 1 FROM releases_release r WHERE r.id = NEW.release_id AND release_is_over(r.state)))
    THEN
        PERFORM release_refuse('release_step_in_turn', 'a step runs when all before it have passed or were skipped');
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER release_step_guard BEFORE UPDATE OR DELETE ON releases_releasestep
    FOR EACH ROW EXECUTE FUNCTION release_step_guard();

-- The last step of every release, and no other, promotes.
CREATE FUNCTION release_ends_in_promotion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT array_agg(s.index ORDER BY s.index) FROM releases_releasestep s
        WHERE s.release_id = NEW.id AND s.kind = 'promote')
       IS DISTINCT FROM
       (SELECT array[max(s.index)] FROM releases_releasestep s WHERE s.release_id = NEW.id)
    THEN
        PERFORM release_refuse('release_ends_in_promotion', 'the last step of a release, and no other, promotes');
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER release_ends_in_promotion AFTER INSERT ON releases_release
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION release_ends_in_promotion();

-- Four eyes: somebody else than who made the release, of exactly this plan, before it starts.
CREATE FUNCTION release_approval_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_release releases_release%ROWTYPE;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM release_refuse('release_approval_stays', 'the approval of a release never changes');
    END IF;
    SELECT * INTO v_release FROM releases_release WHERE id = NEW.release_id FOR SHARE;
    IF v_release.made_by_id = NEW.reviewer_id THEN
        PERFORM release_refuse('release_four_eyes', 'nobody approves a release of their own');
    END IF;
    IF v_release.digest <> NEW.digest OR v_release.state <> 'pending' THEN
        PERFORM release_refuse('release_approval_names_plan', 'an approval names the plan of a release that has not started');
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER release_approval_guard BEFORE INSERT OR UPDATE OR DELETE ON releases_releaseapproval
    FOR EACH ROW EXECUTE FUNCTION release_approval_guard();

-- While a release is active its alias stands at the stable version and is split towards its candidate alone; at commit.
CREATE FUNCTION release_holds_alias(alias bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM releases_release r
        JOIN releases_alias a ON a.id = r.alias_id
        LEFT JOIN releases_aliassplit s ON s.alias_id = a.id
        WHERE r.alias_id = alias AND NOT release_is_over(r.state)
          AND (a.version_id <> r.stable_id OR s.candidate_id <> r.candidate_id OR s.shadow_id <> r.candidate_id))
    THEN
        PERFORM release_refuse('release_holds_alias', 'while a release is active nothing else moves or splits its alias');
    END IF;
END $$;
CREATE FUNCTION release_holds_its_alias() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM release_holds_alias(NEW.alias_id);
    RETURN NULL;
END $$;
CREATE FUNCTION release_holds_this_alias() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM release_holds_alias(NEW.id);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER release_holds_alias AFTER INSERT ON releases_release
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION release_holds_its_alias();
CREATE CONSTRAINT TRIGGER release_holds_alias AFTER UPDATE OF version_id ON releases_alias
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION release_holds_this_alias();
CREATE CONSTRAINT TRIGGER release_holds_alias AFTER INSERT OR UPDATE ON releases_aliassplit
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION release_holds_its_alias();

-- Invariant 2: what is withdrawn answers for no alias as a candidate or a shadow any more, and is released nowhere.
CREATE FUNCTION version_leaves_releases() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM registry_version v WHERE v.id = NEW.id AND v.state <> 'approved') AND (
        EXISTS (SELECT 1 FROM releases_aliassplit s WHERE NEW.id IN (s.candidate_id, s.shadow_id))
        OR EXISTS (SELECT 1 FROM releases_release r WHERE r.candidate_id = NEW.id AND NOT release_is_over(r.state)))
    THEN
        PERFORM release_refuse('version_leaves_releases', 'a version that is withdrawn is no candidate any more');
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER version_leaves_releases AFTER UPDATE OF state ON registry_version
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.state = 'approved' AND NEW.state <> 'approved')
    EXECUTE FUNCTION version_leaves_releases();

CREATE FUNCTION rollback_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR (NEW.id, NEW.alias_id, NEW.release_id, NEW.revision, NEW.left_id, NEW.asked_at, NEW.committed_at)
        IS DISTINCT FROM (OLD.id, OLD.alias_id, OLD.release_id, OLD.revision, OLD.left_id, OLD.asked_at, OLD.committed_at)
    THEN
        PERFORM release_refuse('rollback_stays', 'what a rollback was never changes');
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER rollback_guard BEFORE UPDATE OR DELETE ON releases_rollback
    FOR EACH ROW EXECUTE FUNCTION rollback_guard();

-- Every edition of a template stays; editions count without gaps.
CREATE FUNCTION release_template_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM release_refuse('release_template_stays', 'an edition of a release template never changes');
    END IF;
    IF NEW.number <> (
        SELECT coalesce(max(number), 0) + 1 FROM releases_releasetemplate t
        WHERE t.tenant_id = NEW.tenant_id AND t.name = NEW.name)
    THEN
        PERFORM release_refuse('release_template_contiguous', 'editions of a release template count without gaps');
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER release_template_guard BEFORE INSERT OR UPDATE OR DELETE ON releases_releasetemplate
    FOR EACH ROW EXECUTE FUNCTION release_template_guard();

GRANT SELECT, INSERT ON
    releases_release, releases_releasestep, releases_releaseapproval, releases_rollback, releases_releasetemplate
    TO lorekeeper_app;
GRANT UPDATE (state, step, revision, paused_state, pause_kind, sentence, started_at, ended_at, looked_at)
    ON releases_release TO lorekeeper_app;
GRANT UPDATE (state, attempt, started_at, resumed_at, ended_at, sentence, verdict, judged_at)
    ON releases_releasestep TO lorekeeper_app;
GRANT UPDATE (last_answer_at, strays, settled_at) ON releases_rollback TO lorekeeper_app;
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY[
        'releases_releasestep', 'releases_releaseapproval', 'releases_rollback', 'releases_releasetemplate']
    LOOP
        EXECUTE format('GRANT USAGE ON SEQUENCE %s TO lorekeeper_app', pg_get_serial_sequence(t, 'id'));
    END LOOP;
END $$;

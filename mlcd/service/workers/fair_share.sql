-- When a run of each member last left its slot. Runs without a member have ''.
CREATE TABLE IF NOT EXISTS mlcd_turns (member character varying PRIMARY KEY, at timestamptz NOT NULL);

-- When a run leaves its slot, the other members come before its member, and workers are notified to fetch the next job.
CREATE OR REPLACE FUNCTION mlcd_slot_left_v1()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO mlcd_turns VALUES (COALESCE(OLD.args ->> 'member', ''), clock_timestamp())
        ON CONFLICT (member) DO UPDATE SET at = EXCLUDED.at;
    PERFORM pg_notify(
        'procrastinate_queue_v1#' || OLD.queue_name, json_build_object('type', 'job_inserted', 'job_id', OLD.id)::text
    );
    RETURN NULL;
END;
$$;
-- Created only once: replacing it would wait for every job that is being changed, and needs PostgreSQL 14.
DO $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM pg_trigger WHERE tgname = 'mlcd_slot_left' AND tgrelid = 'procrastinate_jobs'::regclass
    ) THEN
        CREATE TRIGGER mlcd_slot_left AFTER UPDATE OF status OR DELETE ON procrastinate_jobs
            FOR EACH ROW WHEN (OLD.status = 'doing' AND OLD.args ->> 'errand' <> 'take down')
            EXECUTE FUNCTION mlcd_slot_left_v1();
    END IF;
END;
$$;

-- Selects the next job for a worker like procrastinate_fetch_job_v2, but with a fair share for every member.
-- A member has at most `at_most` runs on all workers and half of the slots of each worker; runs that only compute leave
-- one slot of each worker free. Order: teardowns first; then the member with the fewest runs under way; then the member
-- who has been without a slot for the longest; among a member's own runs, those on real machines first.
CREATE OR REPLACE FUNCTION mlcd_fetch_job_v1(target_queue_names character varying[], p_worker_id bigint, p_at_once int)
    RETURNS procrastinate_jobs
    LANGUAGE plpgsql
AS $$
DECLARE
    found_jobs procrastinate_jobs;
BEGIN
    -- Serialize the workers: each must see what the previous one has taken.
    PERFORM pg_advisory_xact_lock({locks}, -1);
    WITH doing AS (
        SELECT COALESCE(args ->> 'member', '') AS member, count(*) AS everywhere, count(*) FILTER (WHERE worker_id = p_worker_id) AS here
            FROM procrastinate_jobs
            WHERE status = 'doing' AND args ->> 'errand' <> 'take down'
            GROUP BY 1
    ), computing AS (
        SELECT count(*) AS here
            FROM procrastinate_jobs
            WHERE status = 'doing' AND worker_id = p_worker_id AND (args ->> 'computes')::boolean
    ), candidate AS (
        SELECT jobs.id
            FROM procrastinate_jobs AS jobs
                LEFT JOIN doing ON doing.member = COALESCE(jobs.args ->> 'member', '')
                LEFT JOIN mlcd_turns AS turns ON turns.member = COALESCE(jobs.args ->> 'member', '')
            WHERE
                NOT EXISTS (
                    SELECT 1
                        FROM procrastinate_jobs AS other_jobs
                        WHERE jobs.lock IS NOT NULL AND other_jobs.lock = jobs.lock
                            AND (other_jobs.status = 'doing' OR (other_jobs.status = 'todo' AND other_jobs.id < jobs.id))
                )
                AND jobs.status = 'todo'
                AND (target_queue_names IS NULL OR jobs.queue_name = ANY (target_queue_names))
                AND (jobs.scheduled_at IS NULL OR jobs.scheduled_at <= now())
                AND (
                    jobs.args ->> 'member' IS NULL
                    OR jobs.args ->> 'errand' = 'take down'
                    OR (
                        COALESCE(doing.everywhere, 0) < (jobs.args ->> 'at_most')::int
                        AND COALESCE(doing.here, 0) < GREATEST(1, p_at_once / 2)
                    )
                )
                AND (
                    NOT COALESCE((jobs.args ->> 'computes')::boolean, false)
                    OR (SELECT here FROM computing) < GREATEST(1, p_at_once - 1)
                )
            ORDER BY
                COALESCE(jobs.args ->> 'errand' <> 'take down', false),
                COALESCE(doing.everywhere, 0), turns.at NULLS FIRST,
                COALESCE((jobs.args ->> 'computes')::boolean, false), jobs.priority DESC, jobs.id
            LIMIT 1
            FOR UPDATE OF jobs SKIP LOCKED
    )
    UPDATE procrastinate_jobs
        SET status = 'doing', worker_id = p_worker_id
        FROM candidate
        WHERE procrastinate_jobs.id = candidate.id
        RETURNING procrastinate_jobs.* INTO found_jobs;
    RETURN found_jobs;
END;
$$;

-- The next job for a worker, as procrastinate_fetch_job_v2 has it, with a fair share for every member.
-- A member has at most `at_most` runs on all workers and half of the slots of each; runs that only compute leave one
-- slot of each worker free. First what is torn down, then runs on real machines, then who has the fewest under way.
CREATE OR REPLACE FUNCTION mlcd_fetch_job_v1(target_queue_names character varying[], p_worker_id bigint, p_at_once int)
    RETURNS procrastinate_jobs
    LANGUAGE plpgsql
AS $$
DECLARE
    found_jobs procrastinate_jobs;
BEGIN
    -- One worker after the other: each must see what the one before has taken.
    PERFORM pg_advisory_xact_lock({locks}, -1);
    WITH doing AS (
        SELECT args ->> 'member' AS member, count(*) AS everywhere, count(*) FILTER (WHERE worker_id = p_worker_id) AS here
            FROM procrastinate_jobs
            WHERE status = 'doing' AND args ->> 'errand' <> 'take down'
            GROUP BY 1
    ), computing AS (
        SELECT count(*) AS here
            FROM procrastinate_jobs
            WHERE status = 'doing' AND worker_id = p_worker_id AND (args ->> 'computes')::boolean
    ), candidate AS (
        SELECT jobs.id
            FROM procrastinate_jobs AS jobs LEFT JOIN doing ON doing.member = jobs.args ->> 'member'
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
                CASE
                    WHEN jobs.args ->> 'errand' IS NULL OR jobs.args ->> 'errand' = 'take down' THEN 0
                    WHEN (jobs.args ->> 'computes')::boolean THEN 2
                    ELSE 1
                END,
                COALESCE(doing.everywhere, 0), jobs.priority DESC, jobs.id
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

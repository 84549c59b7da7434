// Made by npm run types: do not edit.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * Accepted
         * @description A run that waits for a worker. `note`: why it has to wait, if known; else empty.
         */
        Accepted: {
            /** @description The run's name. */
            run: string;
            /**
             * @description What keeps it waiting, if that is known; else empty.
             * @default
             */
            note: string;
        };
        /**
         * AddedReceiver
         * @description A new receiver, and its secret, which is shown only once.
         */
        AddedReceiver: {
            /** @description Its number. */
            number: number;
            /** @description With it, a webhook verifies signatures; empty for mail. */
            secret: string;
        };
        /**
         * Address
         * @description Where to sign in.
         */
        Address: {
            /** @description The provider's URL, with its parameters. */
            url: string;
        };
        /**
         * Again
         * @description The changes for the new run; what is not given stays as it was.
         */
        Again: {
            /** @description The objective. */
            goal?: ("fastest" | "cheapest" | "knee" | "per-dollar") | null;
            /** @description Dollars, such as 100; none. */
            budget?: string | null;
            /** @description A time, such as 6h or 1d 4h; none. */
            deadline?: string | null;
            /**
             * @description Also run what is decided.
             * @default false
             */
            launch: boolean;
            /**
             * @description Agrees to spend real money; without it, a place that rents is refused with 409 and `asks`.
             * @default false
             */
            yes: boolean;
        };
        /**
         * Ahead
         * @description The outlook of a search. Modelled from published rates, not measured.
         */
        Ahead: {
            /** @description Configurations in the search space; null if not known. */
            configurations: number | null;
            /** @description The first probes; empty if nothing would be probed. */
            first: components["schemas"]["FirstProbe"][];
            /** @description Price range: the cheapest and the most expensive instance type at the smallest size. */
            usd_per_hour: [
                number,
                number
            ] | null;
            /** @description Whether the limits look possible: likely, doubtful, unlikely, unknown. */
            chance: string;
            /** @description Why. */
            because: string;
            /** @description The expected best configuration; null if not known. */
            best: string | null;
            /** @description The expected cost of the job there, in dollars. */
            usd: number | null;
            /** @description The expected duration of the job there, in seconds. */
            seconds: number | null;
        };
        /**
         * AllocatedStage
         * @description A stage of a plan: what each trial is given, and what all take together.
         */
        AllocatedStage: {
            /** @description Functions that train together. */
            functions: number;
            /** @description Memory of each, in MB. */
            memory_mb: number;
            /** @description The storage through which they exchange gradients. */
            storage: string;
            /** @description Its number, from 1 on. */
            stage: number;
            /** @description Trials of the stage. */
            trials: number;
            /** @description Epochs of each trial. */
            epochs: number;
            /** @description Expected seconds of the stage. */
            seconds: number;
            /** @description Expected dollars of the stage. */
            usd: number;
        };
        /**
         * Asked
         * @description A submission: the text of a job file, and options as on the command line.
         */
        Asked: {
            /** @description The command: train, tune, scale, serve, or that of an added planner. */
            kind: string;
            /**
             * @description The text of a job file.
             * @default
             */
            job: string;
            /**
             * @description By their names on the command line, such as budget.
             * @default {}
             */
            options: {
                [key: string]: string | boolean | number | string[] | {
                    [key: string]: number;
                } | null;
            };
            /**
             * @description Also run what is decided.
             * @default false
             */
            launch: boolean;
            /**
             * @description Agrees to spend real money; without it, a place that rents is refused with 409 and `asks`.
             * @default false
             */
            yes: boolean;
            /** @description To serve a model: the hash that POST /uploads answered. */
            upload?: string | null;
            /** @description To serve a model of `recorded:NAME`: its name there. */
            model?: string | null;
            /** @description To serve a model: the text of a file of knobs. */
            knobs?: string | null;
            /** @description The job file's, for messages. */
            name?: string | null;
            /** @description The run's project: a word. */
            project?: string | null;
            /**
             * @description The run's tags: words.
             * @default []
             */
            tags: string[];
        };
        /**
         * AskedReceiver
         * @description A receiver to add: a member's own mail address, or one that an admin adds for the service.
         */
        AskedReceiver: {
            /** @description A mail address; or https://... of a webhook. */
            address: string;
            /**
             * @description json: signed JSON to a webhook; slack: a message in Slack's format.
             * @default mail
             * @enum {string}
             */
            kind: "mail" | "json" | "slack";
            /**
             * @description A name of your choice.
             * @default
             */
            name: string;
            /** @description Only these events; null for all. */
            events?: string[] | null;
            /**
             * @description true: mail to yourself about your own runs. false: for the service; only admins.
             * @default true
             */
            own: boolean;
            /** @description Only of this member's runs. */
            member?: string | null;
            /** @description Only of this team's runs. */
            team?: string | null;
        };
        /**
         * AuditAnswer
         * @description A page of the audit log.
         */
        AuditAnswer: {
            /** @description The newest first. */
            entries: components["schemas"]["AuditedAction"][];
        };
        /**
         * AuditedAction
         * @description One thing that somebody did, or was refused.
         */
        AuditedAction: {
            /** @description The number of the entry. */
            seq: number;
            /**
             * Format: date-time
             * @description The time.
             */
            at: string;
            /** @description The member, or the IP address of a client that is not signed in. */
            who: string;
            /** @description The action, such as submit. */
            action: string;
            /** @description The run, member or other thing that it concerns. */
            about: string;
            /** @description ok, or refused. */
            outcome: string;
            /** @description Details, or why it was refused. */
            detail: string;
        };
        /**
         * Axis
         * @description An axis of a figure.
         */
        Axis: {
            /** @description What it measures. */
            label: string;
            /**
             * @description The unit of its numbers; `usd` and `s` are written as money and as time.
             * @default
             */
            unit: string;
            /**
             * @description How its numbers are spread.
             * @default linear
             * @enum {string}
             */
            scale: "linear" | "log";
            /**
             * @description What stands at 1, 2, 3 ... in place of the numbers.
             * @default []
             */
            names: string[];
        };
        /**
         * BestTrial
         * @description The trial that a tuning run has found.
         */
        BestTrial: {
            /** @description Its number. */
            trial: number;
            /** @description Its last loss. */
            loss: number | null;
            /** @description Its hyperparameters, by name. */
            hyperparameters: {
                [key: string]: number;
            };
        };
        /**
         * CalibrationResult
         * @description What a calibration probe has measured.
         */
        CalibrationResult: {
            /** @description Seconds to work through a megabyte. */
            s_per_mb: number;
            /** @description Megabytes a second at which data is read. */
            load_mb_per_s: number;
            /** @description Seconds from the call until the last function was up. */
            start_s: number;
            /** @description Seconds of one exchange between all functions. */
            sync_s: number;
            /** @description Single objects. */
            transfers: components["schemas"]["TransferTime"][];
        };
        /**
         * Certificate
         * @description What makes a choice safe.
         */
        Certificate: {
            /** @description Whether it is. */
            certified: boolean;
            /** @description The probability with which the job is done within its limits. */
            confidence: number | null;
            /** @description What it is about. */
            headline: string;
            /** @description What is summed up. */
            sentence: string;
            /** @description A sum for each limit. */
            terms: components["schemas"]["CertificateTerm"][];
        };
        /**
         * CertificateTerm
         * @description gone + kept <= limit.
         */
        CertificateTerm: {
            /**
             * @description Dollars or seconds.
             * @enum {string}
             */
            unit: "usd" | "s";
            /** @description What the search took. */
            gone: number;
            /** @description What finishing takes at the most. */
            kept: number;
            /** @description The limit. */
            limit: number;
            /** @description Whether the sum is within the limit. */
            holds: boolean;
        };
        /**
         * Column
         * @description A column of a table.
         */
        Column: {
            /** @description Its heading. */
            label: string;
            /**
             * @description The unit of its numbers; `usd` and `s` are written as money and as time.
             * @default
             */
            unit: string;
            /**
             * @description Where its cells stand.
             * @default left
             * @enum {string}
             */
            align: "left" | "right" | "center";
        };
        /**
         * ComparedCell
         * @description What is to be said of one run.
         */
        ComparedCell: {
            /** @description In words; a dash for nothing. */
            words: string;
            /**
             * @description A few words below.
             * @default
             */
            note: string;
        };
        /**
         * ComparedPaths
         * @description What the best so far is told by.
         */
        ComparedPaths: {
            /** @description Such as: time to finish. */
            name: string;
            /**
             * @description Seconds, dollars, answers a second, or a loss.
             * @enum {string}
             */
            unit: "s" | "usd" | "rate" | "loss";
            /** @description Whether less is better. */
            lower_is_better: boolean;
        };
        /**
         * ComparedRow
         * @description One thing, of every run.
         */
        ComparedRow: {
            /** @description What it is. */
            name: string;
            /** @description One for each run, in order. */
            cells: components["schemas"]["ComparedCell"][];
            /** @description Whether not all runs have the same. */
            differs: boolean;
        };
        /**
         * ComparedRun
         * @description A run among others. Amounts are null where there is nothing to say yet.
         */
        ComparedRun: {
            /** @description Its line in the list of runs. */
            summary: components["schemas"]["Summary"];
            /** @description Its answer in one line. */
            headline: string;
            /** @description Whether its choice is certified; null where nothing is decided. */
            certified: boolean | null;
            /** @description Seconds in all: what it took, or is expected to take. */
            total_s: number | null;
            /** @description Dollars in all: what it cost, or is expected to cost. */
            total_usd: number | null;
            /** @description Probes that were made. */
            probes: number;
            /** @description Dollars that probes cost. */
            probing_usd: number;
            /** @description Seconds that probes took, one after the other. */
            probing_s: number;
            /** @description Dollars that the job itself has cost so far. */
            final_usd: number;
            /** @description Seconds that the job itself took so far. */
            final_s: number;
            /** @description The best so far; empty where it cannot be compared. */
            path: components["schemas"]["PathPoint"][];
        };
        /**
         * ComparedSection
         * @description Rows that belong together.
         */
        ComparedSection: {
            /** @description Their heading. */
            title: string;
            /** @description From top to bottom. */
            rows: components["schemas"]["ComparedRow"][];
            /**
             * @description How many more rows there would be.
             * @default 0
             */
            left_out: number;
        };
        /**
         * Comparison
         * @description Runs side by side.
         */
        Comparison: {
            /** @description In the order in which they were asked for. */
            runs: components["schemas"]["ComparedRun"][];
            /** @description Answers, certificates, limits and costs. */
            sections: components["schemas"]["ComparedSection"][];
            /** @description What each configuration showed; those that most runs tried first. */
            probed: components["schemas"]["ComparedSection"];
            /** @description The jobs by the keys of the job file: those that differ first. */
            job: components["schemas"]["ComparedSection"];
            /** @description What `path` of the runs is about; null where they share nothing. */
            paths: components["schemas"]["ComparedPaths"] | null;
            /** @description What cannot be compared, and why. */
            notes: string[];
        };
        /**
         * ComputeSpeed
         * @description How fast functions of one size are.
         */
        ComputeSpeed: {
            /** @description Memory of a function, in MB. */
            memory_mb: number;
            /** @description Seconds to work through a megabyte. */
            s_per_mb: number;
        };
        /**
         * Credentials
         * @description Whether a cloud's credentials are on the machine of this service.
         */
        Credentials: {
            /** @description The cloud. */
            cloud: string;
            /** @description Whether credentials were found. */
            found: boolean;
            /** @description How to set them up; empty if they were found. */
            to_do: string;
        };
        /**
         * CurvePoint
         * @description What is expected of a configuration of an elastic job.
         */
        CurvePoint: {
            /** @description The type of each machine. */
            instance_type: string;
            /** @description How many machines. */
            nodes: number;
            /** @description Whether they are spot machines. */
            spot: boolean;
            /** @description Dollars an hour, all machines together. */
            usd_per_hour: number;
            /** @description The global batch, where it may vary. */
            batch: number | null;
            /**
             * @description Settings of a server, or of a training plan, by name.
             * @default {}
             */
            knobs: {
                [key: string]: number | string | boolean;
            };
            /** @description Workers of the job. */
            workers: number;
            /** @description Expected seconds; null where no time is claimed. */
            seconds: number | null;
            /** @description Expected dollars; null where no time is claimed. */
            usd: number | null;
            /** @description Between which ends it is nine times of ten. */
            interval_s: [
                number,
                number
            ] | null;
            /** @description Times the least time of all. */
            time_factor: number;
            /** @description Times the least cost of all. */
            cost_factor: number;
            /** @description Whether it was probed. */
            measured: boolean;
            /** @description Whether nothing else is both faster and cheaper. */
            on_boundary: boolean;
            /** @description Whether more money buys little speed from here on. */
            knee: boolean;
            /** @description Whether it is the decision. */
            chosen: boolean;
        };
        /**
         * DrivenRun
         * @description A run that a worker has taken.
         */
        DrivenRun: {
            /** @description The run's name. */
            run: string;
            /** @description see through; see through, and launch; take down. */
            errand: string;
            /** @description The member whose run it is; null for nobody's. */
            member: string | null;
            /** @description When it was taken. */
            since: string | null;
        };
        /**
         * DriverAnswer
         * @description Who drives a run, or what it waits for.
         */
        DriverAnswer: {
            /** @description The run's name. */
            run: string;
            /**
             * @description silent: its worker sends no heartbeat; nobody: it is neither queued nor driven.
             * @enum {string}
             */
            state: "waits" | "driven" | "silent" | "nobody";
            /** @description The state in a sentence; empty for nobody. */
            words: string;
            /** @description Its position in the queue, from 1. */
            place: number | null;
            /** @description The length of the queue. */
            waiting: number;
            /** @description The number of its worker. */
            worker: number | null;
            /** @description Its worker's machine; else empty. */
            host: string;
            /** @description Since when it has been queued or driven. */
            since: string | null;
            /** @description The last heartbeat of its worker. */
            seen_at: string | null;
        };
        /**
         * EpochAllocation
         * @description What one epoch of one trial takes on an allocation that nothing beats in both time and cost.
         */
        EpochAllocation: {
            /** @description Functions that train together. */
            functions: number;
            /** @description Memory of each, in MB. */
            memory_mb: number;
            /** @description The storage through which they exchange gradients. */
            storage: string;
            /** @description Its name. */
            label: string;
            /** @description Expected seconds. */
            seconds: number;
            /** @description Expected dollars. */
            usd: number;
            /** @description Whether more money buys little speed from here on. */
            knee: boolean;
            /** @description Whether the chosen plan has it. */
            used: boolean;
        };
        /**
         * EpochResult
         * @description An epoch of a training run as it went; without a number, a launch that broke: it has no other parts either.
         */
        EpochResult: {
            /** @description Functions that train together. */
            functions: number;
            /** @description Memory of each, in MB. */
            memory_mb: number;
            /** @description The storage through which they exchange gradients. */
            storage: string;
            /** @description Its number, from 1 on. */
            epoch: number | null;
            /** @description The loss at its end. */
            loss: number | null;
            /** @description How long it took. */
            seconds: number;
            /** @description What it cost. */
            usd: number;
            /** @description How its launch ended. */
            outcome: string;
            /** @description More of how it ended. */
            detail: string;
            /** @description The trial that it is of. */
            trial: number | null;
            /** @description Seconds until the slowest function was up. */
            start_s: number | null;
            /** @description Seconds to read the data. */
            load_s: number | null;
            /** @description Seconds of computing. */
            compute_s: number | null;
            /** @description Seconds of exchanging gradients. */
            sync_s: number | null;
            /** @description Seconds that are billed, all functions together. */
            function_s: number | null;
            /** @description Requests to the storage. */
            requests: number | null;
            /** @description Attempts of functions that came to nothing. */
            retries: number | null;
        };
        /**
         * EventState
         * @description An event that can be chosen.
         */
        EventState: {
            /** @description Its name. */
            name: string;
            /** @description When it occurs. */
            when: string;
        };
        /**
         * Example
         * @description A job file to begin with.
         */
        Example: {
            /** @description Its name. */
            name: string;
            /**
             * @description The kind to submit it as.
             * @enum {string}
             */
            kind: "train" | "tune" | "scale" | "serve";
            /** @description The file. */
            text: string;
        };
        /**
         * Examples
         * @description Job files to begin with.
         */
        Examples: {
            /** @description One of each kind. */
            examples: components["schemas"]["Example"][];
        };
        /**
         * ExchangeTime
         * @description How long functions take to exchange a gradient.
         */
        ExchangeTime: {
            /** @description How many take part. */
            functions: number;
            /** @description What one exchange took. */
            seconds: number;
        };
        /**
         * Export
         * @description Files for another tool.
         */
        Export: {
            /** @description The run's name. */
            run: string;
            /** @description The tool. */
            to: string;
            /** @description The main file. */
            main: string;
            /** @description The text of each file, by its name. */
            files: {
                [key: string]: string;
            };
            /** @description What the files cannot express. */
            notes: string[];
        };
        /**
         * Fact
         * @description A key figure, in words.
         */
        Fact: {
            /** @description What it is. */
            label: string;
            /** @description How much it is, with its unit. */
            value: string;
            /**
             * @description A few words below it.
             * @default
             */
            hint: string;
        };
        /**
         * Figure
         * @description A small chart.
         */
        Figure: {
            /** @description Its heading. */
            title: string;
            /**
             * @description How a series is drawn. `spans`: each piece of it is a bar along its row, a single point a mark.
             * @enum {string}
             */
            kind: "points" | "lines" | "bars" | "spans";
            /** @description Across. */
            x: components["schemas"]["Axis"];
            /** @description Up. */
            y: components["schemas"]["Axis"];
            /** @description Each in a colour and a shape of its own. */
            series: components["schemas"]["Series"][];
            /**
             * @description Lines that should not be crossed.
             * @default []
             */
            limits: components["schemas"]["LimitLine"][];
            /**
             * @description A sentence below it.
             * @default
             */
            note: string;
        };
        /**
         * FirstProbe
         * @description One of the search's first probes, if no earlier runs are taken into account.
         */
        FirstProbe: {
            /** @description Where it would run. */
            configuration: string;
            /** @description Its maximum cost in dollars. */
            worst_usd: number;
            /** @description Its maximum duration in seconds. */
            worst_s: number;
        };
        /**
         * FunctionLimits
         * @description Between which ends functions may be allocated.
         */
        FunctionLimits: {
            /** @description Functions that train together. */
            functions: [
                number,
                number
            ];
            /** @description Memory of each, in MB. */
            memory_mb: [
                number,
                number
            ];
            /** @description Storages through which they may exchange gradients. */
            storages: string[];
            /** @description Functions that the account lets run at once. */
            concurrency: number | null;
            /** @description Memory of all functions together. */
            memory_at_once_mb: number | null;
        };
        /**
         * FunctionPlan
         * @description The plan of one method.
         */
        FunctionPlan: {
            /** @description What the method is called in a chart. */
            name: string;
            /** @description The method. */
            method: string;
            /** @description Whether it is the decision. */
            chosen: boolean;
            /** @description Whether it ends within the limits; only the chosen one can be. */
            certified: boolean;
            /**
             * @description predicted, where its model was calibrated.
             * @enum {string}
             */
            numbers: "modelled" | "predicted";
            /** @description Expected seconds of all stages. */
            seconds: number;
            /** @description Expected dollars of all stages. */
            usd: number;
            /** @description One after the other. */
            stages: components["schemas"]["AllocatedStage"][];
        };
        /**
         * FunctionPrices
         * @description What functions and storages cost.
         */
        FunctionPrices: {
            /** @description The cloud that asks these prices. */
            cloud: string;
            /** @description Its region. */
            region: string;
            /** @description When they were read. */
            date: string;
            /** @description Where they were read. */
            source: string;
            /** @description Dollars for a function with 1 GB, a second. */
            usd_per_gb_s: number;
            /** @description Dollars for a call. */
            usd_per_call: number;
            /** @description Storages, by name. */
            storages: {
                [key: string]: components["schemas"]["StoragePrice"];
            };
        };
        /**
         * FunctionProbe
         * @description A calibration probe, or a sample of the training.
         */
        FunctionProbe: {
            /** @description Functions that train together. */
            functions: number;
            /** @description Memory of each, in MB. */
            memory_mb: number;
            /** @description The storage through which they exchange gradients. */
            storage: string;
            /** @description ok, or how it failed. */
            outcome: string;
            /** @description How long it took. */
            seconds: number;
            /** @description What it cost. */
            usd: number;
            /** @description What it measured of the platform. */
            calibrated: components["schemas"]["CalibrationResult"] | null;
            /** @description The loss after each epoch of a sample. */
            losses: (number | null)[];
            /** @description More of how it ended. */
            detail: string;
            /** @description Why it was made. */
            because: string;
        };
        /**
         * GoOn
         * @description How to resume a run. What is not given stays as it was. New limits are totals for the whole run.
         */
        GoOn: {
            /** @description Also run what is decided, or stop there. */
            launch?: boolean | null;
            /** @description A new budget for all of the run, such as 100; none. */
            budget?: string | null;
            /** @description A new deadline from the run's beginning, such as 6h; none. */
            deadline?: string | null;
            /** @description How sure a new certificate has to be, such as 0.9. */
            confidence?: string | null;
            /**
             * @description Agrees to spend real money up to new limits; without it: 409, and `asks`.
             * @default false
             */
            yes: boolean;
        };
        /**
         * GradientNoise
         * @description How much the gradients of single samples differ.
         */
        GradientNoise: {
            /** @description The batch at which noise and signal are equal. */
            scale: number | string;
            /** @description One standard error of its logarithm. */
            rel_error: number | string;
            /** @description Whether it has settled. */
            stable: boolean;
            /** @description Scavenger's measure of the same. */
            gamma: number | string | null;
        };
        /**
         * Headway
         * @description A launch under way as it stood at a time of day. What is not known yet is null.
         */
        Headway: {
            /** @description The launch's name. */
            label: string;
            /** @description Whether it is a probe, or the job itself. */
            purpose: components["schemas"]["Purpose"];
            /** @description The configuration that it runs on. */
            where: string;
            /**
             * Format: date-time
             * @description When it stood so.
             */
            at: string;
            /** @description Seconds since its machines were asked for. */
            elapsed_s: number;
            /** @description What it has cost so far. */
            usd: number;
            /** @description All of it in words. */
            words: string;
            /** @description How much of its work is done; above 1 of one that does more than its work states. Null of a probe: it ends when enough is known. */
            share: number | null;
            /** @description Its rate over the last minutes. */
            rate: number | null;
            /**
             * @description The unit of its rate.
             * @default samples/s
             */
            unit: string;
            /** @description Seconds that it will still take. */
            left_s: number | null;
        };
        /**
         * Health
         * @description The service is up, and its database can be read.
         */
        Health: {
            /** @description Whether there are also workers to drive runs. */
            ok: boolean;
            /** @description Why not; else empty. */
            trouble: string;
            /** @description The version of MLCD. */
            version: string;
            /**
             * @description ui: for a single user; service: for a team.
             * @enum {string}
             */
            mode: "ui" | "service";
            /** @description The name of the sign-in provider; null: sign-in with tokens only. */
            provider: string | null;
        };
        /**
         * HowDown
         * @description How to take a run down. `machine_gone`: its machine is lost for good; only for admins.
         */
        HowDown: {
            /**
             * @description The machine with the run's launches will never come back.
             * @default false
             */
            machine_gone: boolean;
        };
        /**
         * JobFile
         * @description The job file and the options of a submission.
         */
        JobFile: {
            /** @description The run's name. */
            run: string;
            /** @description The command, such as train. */
            kind: string;
            /** @description The file's name. */
            name: string;
            /** @description The text of the job file. */
            job: string;
            /** @description By their names on the command line. */
            options: {
                [key: string]: string | boolean | number | string[] | {
                    [key: string]: number;
                } | null;
            };
        };
        /**
         * JobFingerprint
         * @description What identifies a job: runs with the same fingerprint can reuse a model.
         */
        JobFingerprint: {
            /** @description The model's architecture. */
            architecture: string;
            /** @description The training data. */
            data: string;
            /** @description The optimizer. */
            optimizer: string;
        };
        /**
         * JobIdentity
         * @description The job that a model was learned from.
         */
        JobIdentity: {
            /** @description Its name. */
            job: string;
            /** @description Parameters of the model that it trains. */
            parameters: number | null;
            /** @description Samples in its data set. */
            dataset_samples: number | null;
            /** @description What identifies the job. */
            fingerprint: components["schemas"]["JobFingerprint"];
        };
        /**
         * JobMistake
         * @description What is wrong at one place of a job file, and what to do.
         */
        JobMistake: {
            /** @description Counted from 1. */
            line: number;
            /** @description Counted from 1, in characters. */
            column: number;
            /** @description The path of the key, such as mlcd.search.nodes; empty for the whole file. */
            key: string;
            /** @description What is wrong, and what to do, in one line. */
            message: string;
            /** @description The word that was probably meant; null if none. */
            instead: string | null;
        };
        /**
         * JobMistakes
         * @description All mistakes in a job file.
         */
        JobMistakes: {
            /** @description By line, the first 100. */
            mistakes: components["schemas"]["JobMistake"][];
        };
        /**
         * JobText
         * @description A job file, as it is being written.
         */
        JobText: {
            /** @description Its text. */
            job: string;
        };
        /**
         * Knowledge
         * @description The knowledge bases that come with MLCD.
         */
        Knowledge: {
            /** @description By name. */
            knowledge: components["schemas"]["KnowledgeBase"][];
        };
        /**
         * KnowledgeBase
         * @description Models that were measured at one place.
         */
        KnowledgeBase: {
            /** @description Its name. */
            name: string;
            /** @description Where it was measured. */
            source: string;
            /** @description The models. */
            models: components["schemas"]["KnownModel"][];
        };
        /**
         * KnownModel
         * @description A model that was measured.
         */
        KnownModel: {
            /** @description Its name. */
            name: string;
            /** @description Its family of architectures. */
            family: string;
            /** @description The kind of its input. */
            inputs: string;
            /** @description Its weights, in 2**20 bytes. */
            weights_mb: number | null;
            /** @description Its parameters, in billions. */
            parameters: number | null;
            /** @description Measured configurations. */
            cells: number;
            /** @description The share of a forward pass's time, by operator. */
            operators: {
                [key: string]: number;
            };
        };
        /**
         * LabelChange
         * @description A change of labels; what is not given stays. Projects and tags are words without spaces and commas.
         */
        LabelChange: {
            /** @description The project; empty for none. */
            project?: string | null;
            /**
             * @description Tags to add.
             * @default []
             */
            add_tags: string[];
            /**
             * @description Tags to remove.
             * @default []
             */
            remove_tags: string[];
            /** @description A note in plain text; empty for none. */
            note?: string | null;
            /** @description Whether lists hide it; not possible while it is active. */
            archived?: boolean | null;
        };
        /**
         * LabelUse
         * @description A project or tag, and how many runs have it.
         */
        LabelUse: {
            /** @description The project or tag. */
            name: string;
            /** @description Its number of runs, archived ones included. */
            runs: number;
        };
        /**
         * LabelsInUse
         * @description All projects and tags in use.
         */
        LabelsInUse: {
            /** @description By name. */
            projects: components["schemas"]["LabelUse"][];
            /** @description By name. */
            tags: components["schemas"]["LabelUse"][];
        };
        /**
         * LearnedMachine
         * @description An instance type that a model was learned on.
         */
        LearnedMachine: {
            /** @description Its name. */
            instance_type: string;
            /** @description Dollars an hour of one. */
            usd_per_hour: number;
            /** @description Compute devices in one machine. */
            devices: number;
            /** @description The cloud. */
            cloud: string;
            /** @description Its region. */
            region: string;
            /** @description Whether it was a spot machine. */
            spot: boolean;
        };
        /**
         * LearnedModel
         * @description A model of its job that an elastic run has learned.
         */
        LearnedModel: {
            /** @description The name that it is stored under. */
            name: string;
            /** @description The run that learned it. */
            run: string;
            /** @description The job that it was learned from. */
            identity: components["schemas"]["JobIdentity"];
            /** @description The machines that it was learned on. */
            machines: components["schemas"]["LearnedMachine"][];
            /** @description Numbers of machines in the search space. */
            nodes: number[];
            /** @description Global batch sizes in the search space. */
            batches: number[];
            /** @description The parameters of the model, in its planner's format. */
            model: {
                [key: string]: unknown;
            };
            /** @description live, simulated or recorded. */
            provenance: string;
            /** @description The job's target. */
            target: components["schemas"]["LearnedTarget"] | null;
            /** @description Epochs until the target; null if it was not reached. */
            epochs: number | null;
            /**
             * Format: date-time
             * @description When it was stored.
             */
            saved_at: string;
            /** @description The version of MLCD that learned it. */
            version: string;
            /** @description The version of the file format. */
            format: number;
        };
        /**
         * LearnedTarget
         * @description The metric that ended the job.
         */
        LearnedTarget: {
            /** @description Its name. */
            metric: string;
            /** @description The value to reach. */
            value: number;
            /** @description Whether larger is better. */
            at_least: boolean;
        };
        /**
         * LedgerEntries
         * @description The entries of a run after a number.
         */
        LedgerEntries: {
            /** @description The run's name. */
            run: string;
            /** @description In order. */
            entries: components["schemas"]["LedgerEntry"][];
            /** @description Whether a process drives the run now. */
            driven: boolean;
        };
        /**
         * LedgerEntry
         * @description An entry of the ledger as stored.
         */
        LedgerEntry: {
            /** @description Its number. */
            seq: number;
            /** @description The run's name. */
            run: string;
            /** @description When it was written: a time of day, ISO 8601. */
            written_at: string;
            /** @description Seconds on the run's clock. */
            elapsed_s: number;
            /** @description The entry itself; its keys depend on `kind`. */
            entry: {
                [key: string]: unknown;
            };
        };
        /**
         * LedgerRow
         * @description An entry in words.
         */
        LedgerRow: {
            /** @description Its number. */
            seq: number;
            /** @description When it was written: a time of day, ISO 8601. */
            at: string;
            /** @description Seconds on the run's clock. */
            elapsed_s: number;
            /** @description What happened. */
            kind: string;
            /** @description The configuration that it is about; else empty. */
            configuration: string;
            /** @description Dollars that were reserved or paid. */
            usd: number | null;
            /** @description Seconds that were reserved or taken. */
            seconds: number | null;
            /** @description Why. */
            because: string;
            /** @description Dollars spent up to this entry. */
            spent_usd: number;
        };
        /**
         * LedgerRows
         * @description A run's ledger.
         */
        LedgerRows: {
            /** @description The run's name. */
            run: string;
            /** @description Every entry, in order. */
            rows: components["schemas"]["LedgerRow"][];
        };
        /**
         * LimitLine
         * @description A line across a figure, such as a budget.
         */
        LimitLine: {
            /** @description What it limits. */
            label: string;
            /** @description Where it is on its axis. */
            value: number;
            /**
             * @description The axis that it stands on.
             * @default y
             * @enum {string}
             */
            axis: "x" | "y";
        };
        /**
         * LimitRanges
         * @description The ranges in which a limit changes the decision.
         */
        LimitRanges: {
            /** @description Dollars; null if not known. */
            budget: [
                number,
                number
            ] | null;
            /** @description Seconds; null if not known. */
            deadline: [
                number,
                number
            ] | null;
        };
        /**
         * LoadTest
         * @description What load tests showed of a configuration, and whether it keeps what is asked.
         */
        LoadTest: {
            /** @description Settings of the server, by name. */
            knobs: {
                [key: string]: number | string | boolean;
            };
            /** @description Dollars an hour. */
            usd_per_hour: number;
            /** @description ok, or how it failed. */
            outcome: string;
            /** @description Answers a second; null if it failed. */
            rate: number | null;
            /** @description One standard error of the logarithm of the rate. */
            rel_error: number | null;
            /** @description Latencies in seconds, by name: p50, p95, ttft_p95 ... */
            figures: {
                [key: string]: number | null;
            } | null;
            /** @description The upper ends of their intervals: certificates count on them. */
            high: {
                [key: string]: number | null;
            } | null;
            /** @description The most memory that the server held. */
            peak_gb: number | null;
            /** @description Requests that were sent. */
            requests: number | null;
            /** @description Requests that failed. */
            failures: number | null;
            /** @description How good it is by the run's objective; larger is better. */
            value: number;
            /** @description Whether it keeps what is asked, as measured. */
            keeps: boolean;
            /** @description Whether also the unlucky ends of its intervals do. */
            certified: boolean;
            /** @description Dollars for a million answers. */
            usd_per_million: number | null;
            /** @description How long it took. */
            seconds: number;
            /** @description What it cost. */
            usd: number;
            /** @description More of how it ended. */
            detail: string;
            /** @description The server and its version; null for MLCD's own. */
            server: string | null;
        };
        /**
         * LogLine
         * @description A line as a terminal would show it in the end.
         */
        LogLine: {
            /** @description The byte of the log at which it begins. */
            at: number;
            /** @description Its text; the only escape sequences in it are colours. */
            text: string;
            /** @description The rank that wrote it, if the line has such a prefix. */
            rank: number | null;
            /** @description How many characters were cut off at its end. */
            cut: number;
        };
        /**
         * LogMatches
         * @description The matches of a search in a log.
         */
        LogMatches: {
            /** @description The number of the launch. */
            launch: number;
            /** @description The byte at which each matching line begins. */
            at: number[];
            /** @description The byte to continue the search from. */
            next: number;
            /** @description Whether the whole log was searched. */
            done: boolean;
        };
        /**
         * LogParts
         * @description The logs of a run.
         */
        LogParts: {
            /** @description The launches that have a log. */
            launches: number[];
            /** @description The launch that `processes` and `ranks` belong to. */
            launch: number;
            /** @description Its processes; each has its own log. */
            processes: number[];
            /** @description The ranks in the line prefixes of this log. */
            ranks: number[];
        };
        /**
         * LogWindow
         * @description Consecutive lines of a log.
         */
        LogWindow: {
            /** @description The number of the launch. */
            launch: number;
            /** @description From top to bottom. */
            lines: components["schemas"]["LogLine"][];
            /** @description The byte at which the window begins: pass it as `before` for the lines before. */
            start: number;
            /** @description The byte to pass as `after` for the next lines; an incomplete last line is sent again. */
            next: number;
            /** @description How many bytes the log has now. */
            size: number;
            /** @description Whether the log is complete. */
            done: boolean;
        };
        /**
         * Logs
         * @description A piece of a log.
         */
        Logs: {
            /** @description The number of the launch. */
            launch: number;
            /** @description The text of the piece. */
            text: string;
            /** @description The byte at which the next piece begins. */
            next: number;
            /** @description Whether the log is complete and read to its end. */
            done: boolean;
        };
        /**
         * MachineLaunch
         * @description A launch on machines.
         */
        MachineLaunch: {
            /** @description The type of each machine. */
            instance_type: string;
            /** @description How many machines. */
            nodes: number;
            /** @description Whether they are spot machines. */
            spot: boolean;
            /** @description Dollars an hour, all machines together. */
            usd_per_hour: number;
            /** @description The global batch, where it may vary. */
            batch: number | null;
            /**
             * @description Settings of a server, or of a training plan, by name.
             * @default {}
             */
            knobs: {
                [key: string]: number | string | boolean;
            };
            /** @description ok, or how it failed. */
            outcome: string;
            /** @description Its rate; null if it has none. */
            samples_per_s: number | null;
            /** @description One standard error of the logarithm of the rate. */
            rel_error: number | null;
            /** @description How long its machines were held. */
            seconds: number;
            /** @description What it cost. */
            usd: number;
            /** @description Seconds before the job began. */
            startup_s: number;
            /** @description Samples of work that were done. */
            samples_done: number;
            /** @description More of how it ended. */
            detail: string;
            /** @description Where its reports and its `work` do not agree. */
            mismatch: components["schemas"]["WorkMismatch"] | null;
            /** @description Gradient noise, where the job reports it. */
            noise: components["schemas"]["GradientNoise"] | null;
            /** @description The last value of the job's metric. */
            metric: number | string | null;
            /** @description The most of a node's or GPU's memory that it used: a share. */
            memory: number | null;
            /** @description Why it was made; of the job itself, why it ended. */
            because: string;
        };
        /**
         * MachineUsage
         * @description What the machines of a launch used.
         */
        MachineUsage: {
            /** @description Which launch of the run it is of. */
            launch: number;
            /** @description When the record began: a time of day, ISO 8601. */
            began_at: string | null;
            /** @description The machines; empty where nothing is measured (Ray, SkyPilot). */
            machines: components["schemas"]["MeasuredMachine"][];
            /** @description The launch's GPUs. */
            gpus: components["schemas"]["MeasuredGpu"][];
            /** @description In order of time; a long record is thinned out. */
            points: components["schemas"]["UsagePoint"][];
            /** @description A summary in one line. */
            sentence: string;
            /** @description The average share of all cores that was busy. */
            cpu_share: number | null;
            /** @description The average GPU utilization in percent. */
            gpu_percent: number | null;
            /** @description The peak of memory, and the limit. */
            memory_peak: components["schemas"]["PeakOfMemory"] | null;
        };
        /**
         * Machines
         * @description A configuration of machines.
         */
        Machines: {
            /** @description The type of each machine. */
            instance_type: string;
            /** @description How many machines. */
            nodes: number;
            /** @description Whether they are spot machines. */
            spot: boolean;
            /** @description Dollars an hour, all machines together. */
            usd_per_hour: number;
            /** @description The global batch, where it may vary. */
            batch: number | null;
            /**
             * @description Settings of a server, or of a training plan, by name.
             * @default {}
             */
            knobs: {
                [key: string]: number | string | boolean;
            };
        };
        /**
         * MadeToken
         * @description A new token, which is shown only once.
         */
        MadeToken: {
            /** @description Whose it is. */
            member: string;
            /** @description Its name; empty for the unnamed one. */
            name: string;
            /** @description The token. */
            token: string;
            /** @description When it ends; null: when it is revoked. */
            expires_at: string | null;
        };
        /**
         * Me
         * @description The current user: role, budget, and where their jobs may run.
         */
        Me: {
            /** @description Their name; null in ui mode. */
            name: string | null;
            /**
             * @description Their role with the token of this request.
             * @enum {string}
             */
            role: "viewer" | "runner" | "admin";
            /**
             * @description The token's scope; full: everything in their role.
             * @enum {string}
             */
            scope: "read" | "run" | "full";
            /** @description Their team. */
            team: string | null;
            /** @description What they may spend; null for no limit. */
            budget_usd: number | null;
            /**
             * @description The budget's period: in total, or each month.
             * @enum {string}
             */
            budget_per: "total" | "month";
            /** @description What is left of their or their team's budget, whichever is less. */
            left_usd: number | null;
            /** @description When the budget's next period starts; null: never. */
            renewed_on: string | null;
            /**
             * @description ui: for a single user; service: for a team.
             * @enum {string}
             */
            mode: "ui" | "service";
            /** @description The version of MLCD. */
            version: string;
            /** @description Where jobs may run. */
            places: string[];
            /** @description Recordings that can be replayed. */
            recordings: string[];
            /** @description What they may send. */
            limits: components["schemas"]["MostOf"];
        };
        /**
         * MeasuredGpu
         * @description A GPU.
         */
        MeasuredGpu: {
            /** @description Its kind. */
            name: string;
            /** @description How much memory it has. */
            memory_gib: number;
        };
        /**
         * MeasuredMachine
         * @description A machine, or a share of one.
         */
        MeasuredMachine: {
            /** @description What it is called. */
            name: string;
            /** @description Cores that the job may use. */
            cores: number;
            /** @description Memory in GiB that the job may use. */
            memory_gib: number;
        };
        /**
         * MemberAnswer
         * @description A member. `left_usd`: the remaining budget; null for no limit.
         */
        MemberAnswer: {
            /** @description What may be spent; null for no limit. */
            budget_usd: number | null;
            /**
             * @description The budget's period: in total, or each month.
             * @enum {string}
             */
            budget_per: "total" | "month";
            /** @description What was spent in the period. */
            spent_usd: number;
            /** @description What runs can still spend; null if one of them has no limit. */
            claimed_usd: number | null;
            /** @description Their name. */
            name: string;
            /**
             * @description What they may do.
             * @enum {string}
             */
            role: "viewer" | "runner" | "admin";
            /** @description Their team. */
            team: string | null;
            /** @description What is left for new runs; null for no limit. */
            left_usd: number | null;
        };
        /**
         * MemberChange
         * @description What to change; what is not given stays. Null: no team, no limit.
         */
        MemberChange: {
            /** @description What they may do. */
            role?: ("viewer" | "runner" | "admin") | null;
            /** @description Their team; null for none. */
            team?: string | null;
            /** @description What they may spend; null for no limit. */
            budget_usd?: number | null;
            /** @description The budget's period: in total, or each month. */
            budget_per?: ("total" | "month") | null;
        };
        /**
         * MembersAnswer
         * @description All members.
         */
        MembersAnswer: {
            /** @description By name. */
            members: components["schemas"]["MemberAnswer"][];
        };
        /**
         * Models
         * @description What elastic runs have learned.
         */
        Models: {
            /** @description The models. */
            models: components["schemas"]["LearnedModel"][];
            /** @description Files that cannot be read. */
            unreadable: components["schemas"]["UnreadableModel"][];
        };
        /**
         * MostOf
         * @description The size and rate limits of a member.
         */
        MostOf: {
            /** @description Megabytes of a model. */
            upload_mb: number;
            /** @description Megabytes of all models of a member. */
            uploads_mb_each: number;
            /** @description Kilobytes of any other body. */
            body_kb: number;
            /** @description Requests a minute. */
            per_minute: number;
            /** @description Submissions a minute. */
            submissions_per_minute: number;
        };
        /**
         * MyTokens
         * @description A member's named tokens.
         */
        MyTokens: {
            /** @description By name. */
            tokens: components["schemas"]["TokenState"][];
        };
        /**
         * NewAccount
         * @description Somebody's account at the sign-in provider.
         */
        NewAccount: {
            /** @description The provider's issuer URL. */
            issuer: string;
            /** @description The account's subject: the claim `sub`. */
            subject: string;
        };
        /**
         * NewMember
         * @description A new member. Without a budget there is no limit; a budget is in total, or for each month.
         */
        NewMember: {
            /** @description Their name. */
            name: string;
            /**
             * @description What they may do.
             * @enum {string}
             */
            role: "viewer" | "runner" | "admin";
            /** @description Their team. */
            team?: string | null;
            /** @description What they may spend; null for no limit. */
            budget_usd?: number | null;
            /**
             * @description The budget's period: in total, or each month.
             * @default total
             * @enum {string}
             */
            budget_per: "total" | "month";
        };
        /**
         * NewToken
         * @description A token for a program.
         */
        NewToken: {
            /** @description Its name, such as ci. */
            name: string;
            /**
             * @description read: look; run: also start and end runs.
             * @default read
             * @enum {string}
             */
            scope: "read" | "run";
            /**
             * @description How many days it lasts; null: until it is revoked.
             * @default 90
             */
            days: number | null;
        };
        /**
         * NewsAnswer
         * @description The receivers that the member may see.
         */
        NewsAnswer: {
            /** @description Whether this service can send mail. */
            mails: boolean;
            /** @description Your own; for an admin also those of the service. */
            receivers: components["schemas"]["ReceiverState"][];
            /** @description All events. */
            events: components["schemas"]["EventState"][];
        };
        /**
         * NotBegun
         * @description A run that was asked for and has not begun, or never will.
         */
        NotBegun: {
            /** @description The run's name. */
            run: string | null;
            /** @description queued or refused; empty, where the ledger has no entry. */
            status: string;
            /**
             * @description The job's name.
             * @default
             */
            job: string;
        };
        /**
         * OfferRow
         * @description An instance type with both of its prices, and where and when they were read.
         */
        OfferRow: {
            /** @description The cloud that rents it. */
            cloud: string;
            /** @description Its name there. */
            instance_type: string;
            /** @description The region of the prices. */
            region: string;
            /** @description Virtual CPUs. */
            vcpus: number;
            /** @description Memory, in GB. */
            memory_gb: number;
            /** @description The kind of its GPUs; empty where it has none. */
            accelerator: string;
            /** @description How many GPUs. */
            accelerators: number;
            /** @description Tera-operations a second of one GPU. */
            tflops_per_accelerator: number;
            /** @description Memory of one GPU, in GB. */
            accelerator_memory_gb: number;
            /** @description Network, in Gbit/s. */
            network_gbps: number;
            /** @description Dollars an hour, on demand. */
            usd_per_hour: number;
            /** @description Dollars an hour, on spot; null where that is not known. */
            spot_usd_per_hour: number | null;
            /** @description When the prices were read. */
            price_date: string;
            /** @description Where they were read. */
            source: string;
            /** @description Dollars an hour, on spot, in each zone of which that is known. */
            spot_usd_by_zone?: {
                [key: string]: number;
            };
        };
        /**
         * Offers
         * @description Some offers.
         */
        Offers: {
            /** @description The cheapest first, unless asked otherwise. */
            offers: components["schemas"]["OfferRow"][];
            /** @description How many pass the filters. */
            total: number;
            /** @description The date of the newest price. */
            dated: string;
        };
        /**
         * OperatorShare
         * @description All calls of one kind of operator in a pass of a model.
         */
        OperatorShare: {
            /** @description The operator. */
            kind: string;
            /** @description Its calls in one pass. */
            count: number;
            /** @description Its share of the time of a pass, between 0 and 1. */
            share: number;
        };
        /**
         * OtherLaunch
         * @description A probe of a planner of another package.
         */
        OtherLaunch: {
            /** @description ok, or how it failed. */
            outcome: string;
            /** @description Its rate; null if it has none. */
            samples_per_s: number | null;
            /** @description One standard error of the logarithm of the rate. */
            rel_error: number | null;
            /** @description How long its machines were held. */
            seconds: number;
            /** @description What it cost. */
            usd: number;
            /** @description Seconds before the job began. */
            startup_s: number;
            /** @description Samples of work that were done. */
            samples_done: number;
            /** @description More of how it ended. */
            detail: string;
            /** @description Where its reports and its `work` do not agree. */
            mismatch: components["schemas"]["WorkMismatch"] | null;
            /** @description Gradient noise, where the job reports it. */
            noise: components["schemas"]["GradientNoise"] | null;
            /** @description The last value of the job's metric. */
            metric: number | string | null;
            /** @description The most of a node's or GPU's memory that it used: a share. */
            memory: number | null;
            /** @description Why it was made; of the job itself, why it ended. */
            because: string;
            /** @description The name of its configuration. */
            label: string;
        };
        /**
         * OtherRun
         * @description A run of a planner of another package.
         */
        OtherRun: {
            /** @description The run's name. */
            run: string;
            /** @description train, scale, tune, serve, or the name of a planner of another package. */
            planner: string;
            /**
             * @description Where it stands.
             * @enum {string}
             */
            status: "searching" | "decided" | "infeasible" | "running" | "finished" | "failed" | "stopped";
            /** @description When it began: a time of day, ISO 8601. */
            started_at: string;
            /** @description The job's name. */
            job: string;
            /** @description What is asked of it. */
            goal: components["schemas"]["RunGoal"];
            /** @description The place that its probes run at. */
            on: string;
            /** @description live, simulated or recorded: only what is live costs money. */
            provenance: string;
            /** @description The search method. */
            method: string;
            /** @description Of what the method draws at random. */
            seed: number;
            /** @description Configurations that could be chosen. */
            configurations: number;
            /** @description Of these, what earlier runs have measured. */
            known_configurations: number;
            /** @description Probes that the limits did not allow. */
            refused: (components["schemas"]["RefusedMachines"] | components["schemas"]["RefusedFunctions"])[];
            /** @description What its owner was warned of. */
            warnings: string[];
            /** @description Dollars spent so far, all launches together. */
            spent_usd: number;
            /** @description Seconds on the run's clock. */
            elapsed_s: number;
            /** @description The version of MLCD that began it. */
            version: string;
            /**
             * @description Key figures that its planner adds.
             * @default []
             */
            facts: components["schemas"]["Fact"][];
            /**
             * @description Tables that its planner adds.
             * @default []
             */
            tables: components["schemas"]["Table"][];
            /**
             * @description Charts that its planner adds.
             * @default []
             */
            figures: components["schemas"]["Figure"][];
            /** @description Every probe, in order. */
            probes: components["schemas"]["OtherLaunch"][];
            /** @description What the search ended with; null while it goes on. */
            decision: components["schemas"]["RunDecision"] | null;
            /** @description What the planner says of it, for programs. */
            part: {
                [key: string]: unknown;
            };
        };
        /**
         * PageAnswer
         * @description The answer in words.
         */
        PageAnswer: {
            /** @description In one line of few words; while there is no decision, the sentence. */
            headline: string;
            /** @description In one sentence. */
            sentence: string;
            /** @description One more where it needs saying; else empty. */
            more: string;
        };
        /**
         * PageCard
         * @description A key figure.
         */
        PageCard: {
            /** @description What it is. */
            name: string;
            /** @description How much it is. */
            value: string;
            /** @description A few words below it. */
            note: string;
        };
        /**
         * PathPoint
         * @description Something better than all before it was found.
         */
        PathPoint: {
            /** @description Dollars that were spent by then. */
            usd: number;
            /** @description How good it is. */
            value: number;
            /** @description What it is. */
            label: string;
        };
        /**
         * PathStep
         * @description A probe or trial: its result, the ends of its interval, and what finishing there would take.
         */
        PathStep: {
            /** @description Its place in the order, from 1 on. */
            number: number;
            /** @description What is drawn alike: the instance type and, where it may vary, the batch. */
            series: string;
            /** @description The name of its configuration. */
            label: string;
            /** @description How many machines, or functions. */
            nodes: number;
            /** @description The global batch, where it may vary. */
            batch: number | null;
            /** @description Its rate; null if it has none. */
            rate: number | null;
            /** @description The lower end of the rate's interval. */
            low: number | null;
            /** @description The upper end of the rate's interval. */
            high: number | null;
            /** @description ok, or how it failed. */
            outcome: string;
            /** @description What it cost. */
            usd: number;
            /** @description How long it took. */
            seconds: number;
            /** @description Dollars an hour. */
            usd_per_hour: number;
            /** @description Its accelerator; empty for none. */
            gpu: string;
            /** @description Accelerators of all its machines together. */
            gpus: number;
            /** @description Why it was made. */
            because: string;
            /** @description More of how it ended. */
            detail: string;
            /** @description Whether it may be chosen; null where that is not asked. */
            certified: boolean | null;
            /** @description Whether it measured the decision. */
            chosen: boolean;
            /** @description What finishing there takes; null where it is not known. */
            finish: components["schemas"]["RunForecast"] | null;
        };
        /**
         * PeakOfMemory
         * @description The machine that came closest to its limit.
         */
        PeakOfMemory: {
            /** @description Its name. */
            machine: string;
            /** @description Its peak in GiB. */
            used_gib: number;
            /** @description Its limit in GiB. */
            of_gib: number;
            /** @description Peak divided by limit; at 1 a process is killed. */
            share: number;
        };
        /**
         * PlatformCalibration
         * @description What is known of the platform, and whether it was measured.
         */
        PlatformCalibration: {
            /**
             * @description Whether it was measured.
             * @enum {string}
             */
            numbers: "modelled" | "measured";
            /** @description Who says so. */
            source: string;
            /** @description One standard error of the logarithm of a time that it predicts. */
            rel_error: number;
            /** @description By memory. */
            compute: components["schemas"]["ComputeSpeed"][];
            /** @description Megabytes a second at which data is read. */
            load_mb_per_s: number;
            /** @description Seconds until a call is up. */
            start_s: number;
            /** @description More seconds for each function. */
            start_s_per_function: number;
            /** @description Storages, by name. */
            storages: {
                [key: string]: components["schemas"]["StorageSpeed"];
            };
        };
        /**
         * Point
         * @description A point of a series.
         */
        Point: {
            /** @description Across: a number or, of bars, a name. */
            x: number | string;
            /** @description Up; null where it is not known: a line has a gap there. */
            y: number | null;
            /**
             * @description What a pointer at it reads.
             * @default
             */
            label: string;
        };
        /**
         * Previewed
         * @description A preview of a run, and the cost that has to be agreed to; nothing is reserved.
         */
        Previewed: {
            /** @description The job's name. */
            job: string;
            /** @description The goal and the limits in words. */
            goal_words: string;
            /** @description Configurations in the search space; null if not known. */
            configurations: number | null;
            /** @description The instance types in the search space. */
            types: string[];
            /** @description Where it would run. */
            on: string;
            /** @description What it may spend; null for no limit. */
            budget_usd: number | null;
            /** @description What is left of its owner's budget; null: no budget, or the run does not count. */
            left_usd: number | null;
            /** @description The outlook as `mlcd plan` shows it; null if the run costs no real money. */
            ahead: components["schemas"]["Ahead"] | null;
            /** @description The real money that it may spend, in words; null if none. */
            asks: string | null;
            /** @description The clouds that it may rent from. */
            credentials: components["schemas"]["Credentials"][];
        };
        /**
         * PricedFunctions
         * @description An allocation with its price.
         */
        PricedFunctions: {
            /** @description Functions that train together. */
            functions: number;
            /** @description Memory of each, in MB. */
            memory_mb: number;
            /** @description The storage through which they exchange gradients. */
            storage: string;
            /** @description Functions of all trials that run at the same time. */
            functions_at_once: number;
            /** @description Dollars an hour, all of them together. */
            usd_per_hour: number;
        };
        /**
         * Problem
         * @description The body of every error response.
         */
        Problem: {
            /** @description What is wrong, and what to do, in one line. */
            error: string;
            /** @description If a budget does not allow it: dollars left in it. */
            left_usd?: number | null;
            /** @description If the request needs agreement to a cost: that cost in words. */
            asks?: string | null;
        };
        /**
         * Purpose
         * @description Why machines are rented: to measure, or to do the work.
         * @enum {string}
         */
        Purpose: "probe" | "run";
        /**
         * QueuedRun
         * @description A run in the queue.
         */
        QueuedRun: {
            /** @description Its position in the queue, from 1; it may change as other runs end. */
            place: number;
            /** @description The run's name. */
            run: string;
            /** @description see through; see through, and launch; take down. */
            errand: string;
            /** @description The member whose run it is; null for nobody's. */
            member: string | null;
            /** @description When it was queued. */
            since: string | null;
            /** @description The time of its next retry; null: as soon as it is its turn. */
            not_before: string | null;
        };
        /**
         * Ranked
         * @description A configuration relative to the others, without absolute times: factors of the least time and the least cost.
         */
        Ranked: {
            /** @description The configuration. */
            label: string;
            /** @description What is drawn alike. */
            series: string;
            /** @description Times the least time of all. */
            time_factor: number;
            /** @description Times the least cost of all. */
            cost_factor: number;
            /** @description Whether it is the decision. */
            chosen: boolean;
            /** @description Whether it was probed. */
            measured: boolean;
            /** @description Whether nothing else is both faster and cheaper. */
            frontier: boolean;
            /** @description Whether more money buys little speed from here on. */
            knee: boolean;
        };
        /**
         * ReceiverState
         * @description A receiver and the state of its delivery.
         */
        ReceiverState: {
            /** @description Its number. */
            number: number;
            /** @description What it is called; may be empty. */
            name: string;
            /**
             * @description How notifications are sent.
             * @enum {string}
             */
            kind: "mail" | "json" | "slack";
            /** @description Its address; for a webhook without the path, which may be secret. */
            shown: string;
            /** @description Only these events; null for all. */
            events: string[] | null;
            /** @description The member who receives it; null: an admin added it for the service. */
            owner: string | null;
            /** @description Only of this member's runs; null for all. */
            member: string | null;
            /** @description Only of this team's runs; null for all. */
            team: string | null;
            /** @description Failed attempts to deliver the next notification. */
            tries: number;
            /** @description The time of the next attempt; null: at once. */
            next_at: string | null;
            /** @description Why the last attempt failed; else empty. */
            trouble: string;
        };
        /**
         * RefusedFunctions
         * @description A probe on functions that the limits did not allow.
         */
        RefusedFunctions: {
            /** @description Functions that train together. */
            functions: number;
            /** @description Memory of each, in MB. */
            memory_mb: number;
            /** @description The storage through which they exchange gradients. */
            storage: string;
            /** @description Functions of all trials that run at the same time. */
            functions_at_once: number;
            /** @description Dollars an hour, all of them together. */
            usd_per_hour: number;
            /** @description Its name. */
            label: string;
            /** @description Why it was refused. */
            because: string;
        };
        /**
         * RefusedMachines
         * @description A probe on machines that the limits did not allow.
         */
        RefusedMachines: {
            /** @description The type of each machine. */
            instance_type: string;
            /** @description How many machines. */
            nodes: number;
            /** @description Whether they are spot machines. */
            spot: boolean;
            /** @description Dollars an hour, all machines together. */
            usd_per_hour: number;
            /** @description The global batch, where it may vary. */
            batch: number | null;
            /**
             * @description Settings of a server, or of a training plan, by name.
             * @default {}
             */
            knobs: {
                [key: string]: number | string | boolean;
            };
            /** @description Its name. */
            label: string;
            /** @description Why it was refused. */
            because: string;
        };
        /**
         * Returned
         * @description The parameters with which the provider redirected the browser to our page.
         */
        Returned: {
            /** @description The state of the sign-in. */
            state: string;
            /** @description The authorization code. */
            code?: string | null;
            /** @description The issuer. */
            iss?: string | null;
            /** @description The error code if there is no code. */
            error?: string | null;
        };
        /**
         * RunAction
         * @description What happens to the run now, in words.
         */
        RunAction: {
            /** @description The run's name. */
            run: string;
            /** @description What happens now. */
            words: string;
        };
        /**
         * RunAgreement
         * @description How far int8 agrees with the model itself, on samples of the user's.
         */
        RunAgreement: {
            /** @description 1 where every answer agrees. */
            share: number;
            /** @description Samples that were compared. */
            samples: number;
            /** @description top class, cosine, or relative error (then the share is 1 minus it). */
            measure: string;
            /** @description With less, int8 is not tried. */
            least: number;
        };
        /**
         * RunCap
         * @description A latency that a server has to keep.
         */
        RunCap: {
            /** @description Which latency: p50, p95, p99, ttft_p50, ttft_p95, itl_p50 or itl_p95. */
            figure: string;
            /** @description Seconds at the most; null where no number is known. */
            at_most_s: number | null;
            /** @description All of it, such as `p95 <= 30 ms`. */
            words: string;
        };
        /**
         * RunDecision
         * @description What a search ended with.
         */
        RunDecision: {
            /** @description What was chosen; null where nothing can be certified. */
            configuration: components["schemas"]["Machines"] | components["schemas"]["PricedFunctions"] | null;
            /** @description Whether the job ends within its limits, with `confidence`. */
            certified: boolean;
            /** @description The probability of that; null where there is no limit. */
            confidence: number | null;
            /** @description Why the search ended. */
            because: string;
            /** @description What finishing takes there. */
            forecast: components["schemas"]["RunForecast"] | null;
            /** @description The limit that nothing keeps. */
            binding: string | null;
            /** @description Limits that would be enough, the smallest step first. */
            relaxations: components["schemas"]["RunRelaxation"][];
            /**
             * @description Of an elastic job: what is expected of each configuration.
             * @default []
             */
            curve: components["schemas"]["CurvePoint"][];
        };
        /**
         * RunFinish
         * @description What finishing the job takes on a probed configuration.
         */
        RunFinish: {
            /** @description Expected seconds. */
            seconds: number;
            /** @description Expected dollars. */
            usd: number;
            /** @description Seconds that are counted on at the most. */
            worst_seconds: number;
            /** @description Dollars that are counted on at the most. */
            worst_usd: number;
            /** @description Where the job moves if it is too slow there. */
            fallback: components["schemas"]["Machines"] | components["schemas"]["PricedFunctions"] | null;
            /**
             * @description Share of the work that is expected to be done on spot machines.
             * @default 0
             */
            on_spot: number;
            /** @description Whether it can be chosen: the job ends within the limits there. */
            certifiable: boolean;
        };
        /**
         * RunForecast
         * @description What finishing the job takes somewhere, without the probes.
         */
        RunForecast: {
            /** @description Expected seconds. */
            seconds: number;
            /** @description Expected dollars. */
            usd: number;
            /** @description Seconds that are counted on at the most. */
            worst_seconds: number;
            /** @description Dollars that are counted on at the most. */
            worst_usd: number;
            /** @description Where the job moves if it is too slow there. */
            fallback: components["schemas"]["Machines"] | components["schemas"]["PricedFunctions"] | null;
            /**
             * @description Share of the work that is expected to be done on spot machines.
             * @default 0
             */
            on_spot: number;
        };
        /**
         * RunGoal
         * @description What is asked of a run: an objective, and limits over probes and the final run together.
         */
        RunGoal: {
            /** @description fastest, cheapest, knee or per-dollar. */
            objective: string;
            /** @description Dollars that may be spent; null for no limit. */
            budget_usd: number | null;
            /** @description Seconds that it may take; null for no limit. */
            deadline_s: number | null;
            /** @description How sure a certificate has to be, between 0 and 1. */
            confidence: number;
        };
        /**
         * RunLabels
         * @description The labels of a run.
         */
        RunLabels: {
            /** @description The run's name. */
            run: string;
            /** @description Its project; null for none. */
            project: string | null;
            /** @description Its tags. */
            tags: string[];
            /** @description Its note, in plain text. */
            note: string;
            /** @description Whether lists hide it. */
            archived: boolean;
        };
        /**
         * RunPage
         * @description A run as its page shows it.
         */
        RunPage: {
            /** @description Its line in the list of runs. */
            summary: components["schemas"]["Summary"];
            /** @description What came of it, or where it stands. */
            answer: components["schemas"]["PageAnswer"];
            /** @description The few numbers that matter. */
            cards: components["schemas"]["PageCard"][];
            /** @description Every probe or trial, in order. */
            path: components["schemas"]["PathStep"][];
            /** @description What was spent after each launch. */
            spend: components["schemas"]["Spending"];
            /** @description What was begun and is not settled. */
            under_way: components["schemas"]["UnderWay"][];
            /** @description The newest warnings. */
            warnings: string[];
            /** @description What makes the choice safe; null where nothing is known yet. */
            certificate: components["schemas"]["Certificate"] | null;
            /** @description What will happen next, or why it ended. */
            next: string;
            /** @description What can be done now. */
            actions: ("launch" | "resume" | "stop" | "down")[];
            /** @description What `mlcd show -o json` prints. */
            document: components["schemas"]["TrainRun"] | components["schemas"]["ScaleRun"] | components["schemas"]["ServeRun"] | components["schemas"]["TuneRun"] | components["schemas"]["OtherRun"] | components["schemas"]["NotBegun"];
            /**
             * @description Where the live launches stand of a run that is driven now.
             * @default []
             */
            progress: components["schemas"]["Headway"][];
        };
        /**
         * RunProbe
         * @description A short run of the job, to measure a configuration.
         */
        RunProbe: {
            /** @description The type of each machine. */
            instance_type: string;
            /** @description How many machines. */
            nodes: number;
            /** @description Whether they are spot machines. */
            spot: boolean;
            /** @description Dollars an hour, all machines together. */
            usd_per_hour: number;
            /** @description The global batch, where it may vary. */
            batch: number | null;
            /**
             * @description Settings of a server, or of a training plan, by name.
             * @default {}
             */
            knobs: {
                [key: string]: number | string | boolean;
            };
            /** @description ok, or how it failed. */
            outcome: string;
            /** @description Its rate; null if it has none. */
            samples_per_s: number | null;
            /** @description One standard error of the logarithm of the rate. */
            rel_error: number | null;
            /** @description How long its machines were held. */
            seconds: number;
            /** @description What it cost. */
            usd: number;
            /** @description Seconds before the job began. */
            startup_s: number;
            /** @description Samples of work that were done. */
            samples_done: number;
            /** @description More of how it ended. */
            detail: string;
            /** @description Where its reports and its `work` do not agree. */
            mismatch: components["schemas"]["WorkMismatch"] | null;
            /** @description Gradient noise, where the job reports it. */
            noise: components["schemas"]["GradientNoise"] | null;
            /** @description The last value of the job's metric. */
            metric: number | string | null;
            /** @description The most of a node's or GPU's memory that it used: a share. */
            memory: number | null;
            /** @description Why it was made; of the job itself, why it ended. */
            because: string;
            /** @description What finishing there takes; null if it has no rate. */
            finish: components["schemas"]["RunFinish"] | null;
        };
        /**
         * RunRelaxation
         * @description Another limit, under which there would have been a decision. Null: this limit may stay as it is.
         */
        RunRelaxation: {
            /** @description A budget that would be enough. */
            budget_usd: number | null;
            /** @description A deadline that would be enough. */
            deadline_s: number | null;
            /** @description What would be chosen then. */
            configuration: components["schemas"]["Machines"] | components["schemas"]["PricedFunctions"] | null;
            /** @description Its name, as the trade-off has it. */
            label: string | null;
            /**
             * @description Latencies that it would keep.
             * @default []
             */
            caps: components["schemas"]["RunCap"][];
            /** @description Answers a second that it would give. */
            min_rate: number | null;
            /** @description What trying it costs, where `max_probe` forbade that. */
            max_probe_usd: number | null;
            /** @description How sure it is within the limits as they are. */
            confidence: number | null;
        };
        /**
         * RunTable
         * @description A table in words.
         */
        RunTable: {
            /** @description Its heading. */
            title: string;
            /** @description A sentence below the heading. */
            note: string;
            /** @description From left to right. */
            columns: components["schemas"]["RunTableColumn"][];
            /** @description From top to bottom; each with a cell for every column. */
            rows: string[][];
            /** @description The row of totals; empty if there is none. */
            total: string[];
            /** @description The rows of the decision, counted from 0. */
            chosen: number[];
            /** @description Whether it is collapsed at first. */
            folded: boolean;
        };
        /**
         * RunTableColumn
         * @description A column of a run's table.
         */
        RunTableColumn: {
            /** @description Its heading. */
            name: string;
            /** @description Whether its cells are numbers. */
            number: boolean;
        };
        /**
         * RunTables
         * @description All tables of a run.
         */
        RunTables: {
            /** @description The run's name. */
            run: string;
            /** @description Those at the top of the page first. */
            tables: components["schemas"]["RunTable"][];
        };
        /**
         * RunTarget
         * @description The metric that ends a job.
         */
        RunTarget: {
            /** @description Its name, as the job reports it. */
            metric: string;
            /** @description The value to reach. */
            value: number;
            /** @description Whether larger is better. */
            at_least: boolean;
            /** @description All of it, such as `accuracy >= 0.97`. */
            words: string;
        };
        /**
         * RunTrial
         * @description One load test.
         */
        RunTrial: {
            /** @description Settings of the server, by name. */
            knobs: {
                [key: string]: number | string | boolean;
            };
            /** @description Dollars an hour. */
            usd_per_hour: number;
            /** @description ok, or how it failed. */
            outcome: string;
            /** @description Answers a second; null if it failed. */
            rate: number | null;
            /** @description One standard error of the logarithm of the rate. */
            rel_error: number | null;
            /** @description Latencies in seconds, by name: p50, p95, ttft_p95 ... */
            figures: {
                [key: string]: number | null;
            } | null;
            /** @description The upper ends of their intervals: certificates count on them. */
            high: {
                [key: string]: number | null;
            } | null;
            /** @description The most memory that the server held. */
            peak_gb: number | null;
            /** @description Requests that were sent. */
            requests: number | null;
            /** @description Requests that failed. */
            failures: number | null;
            /** @description How good it is by the run's objective; larger is better. */
            value: number;
            /** @description Whether it keeps what is asked, as measured. */
            keeps: boolean;
            /** @description Whether also the unlucky ends of its intervals do. */
            certified: boolean;
            /** @description Dollars for a million answers. */
            usd_per_million: number | null;
            /** @description How long it took. */
            seconds: number;
            /** @description What it cost. */
            usd: number;
            /** @description More of how it ended. */
            detail: string;
            /** @description The server and its version; null for MLCD's own. */
            server: string | null;
            /** @description Its place in the order of trials, from 1 on. */
            number: number;
            /** @description The name of its configuration. */
            label: string;
            /** @description Why it was made. */
            because: string;
            /** @description What it does not keep, in words. */
            breaks: string[];
            /** @description Whether it measured the decision. */
            chosen: boolean;
        };
        /**
         * RunTuning
         * @description A search of hyperparameters by successive halving.
         */
        RunTuning: {
            /** @description Trials of the first stage. */
            trials: number;
            /** @description Each stage keeps one trial of so many. */
            eta: number;
            /** @description Epochs of each trial in a stage. */
            epochs_per_stage: number;
            /** @description How many stages there are. */
            stages: number;
            /** @description The ends of each hyperparameter. */
            space: {
                [key: string]: [
                    number,
                    number
                ];
            };
        };
        /**
         * RunWorkload
         * @description What is trained, and how large it is.
         */
        RunWorkload: {
            /** @description The model. */
            model: string;
            /** @description The data set. */
            data: string;
            /** @description Samples of the data set. */
            samples: number;
            /** @description Megabytes of data. */
            data_mb: number;
            /** @description Megabytes of the model. */
            model_mb: number;
            /** @description Samples that one function takes in an iteration. */
            batch: number;
            /** @description The learning rate. */
            learning_rate: number;
        };
        /**
         * Runs
         * @description A page of the list of runs.
         */
        Runs: {
            /** @description The runs. */
            runs: components["schemas"]["Summary"][];
            /** @description How many runs pass the filters. */
            total: number;
            /** @description What all runs that pass the filters have spent. */
            spent_usd: number;
        };
        /**
         * ScaleRun
         * @description A run of `mlcd scale`: how many workers an elastic job is given.
         */
        ScaleRun: {
            /** @description The run's name. */
            run: string;
            /**
             * @description The planner's name.
             * @default scale
             * @constant
             */
            planner: "scale";
            /**
             * @description Where it stands.
             * @enum {string}
             */
            status: "searching" | "decided" | "infeasible" | "running" | "finished" | "failed" | "stopped";
            /** @description When it began: a time of day, ISO 8601. */
            started_at: string;
            /** @description The job's name. */
            job: string;
            /** @description What is asked of it. */
            goal: components["schemas"]["RunGoal"];
            /** @description The place that its probes run at. */
            on: string;
            /** @description live, simulated or recorded: only what is live costs money. */
            provenance: string;
            /** @description The search method. */
            method: string;
            /** @description Of what the method draws at random. */
            seed: number;
            /** @description Configurations that could be chosen. */
            configurations: number;
            /** @description Of these, what earlier runs have measured. */
            known_configurations: number;
            /** @description Probes that the limits did not allow. */
            refused: (components["schemas"]["RefusedMachines"] | components["schemas"]["RefusedFunctions"])[];
            /** @description What its owner was warned of. */
            warnings: string[];
            /** @description Dollars spent so far, all launches together. */
            spent_usd: number;
            /** @description Seconds on the run's clock. */
            elapsed_s: number;
            /** @description The version of MLCD that began it. */
            version: string;
            /**
             * @description Key figures that its planner adds.
             * @default []
             */
            facts: components["schemas"]["Fact"][];
            /**
             * @description Tables that its planner adds.
             * @default []
             */
            tables: components["schemas"]["Table"][];
            /**
             * @description Charts that its planner adds.
             * @default []
             */
            figures: components["schemas"]["Figure"][];
            /** @description All the work of the job, in samples. */
            work_samples: number;
            /** @description Of these, what a checkpoint holds. */
            saved_samples: number;
            /** @description The metric that ends the job. */
            target: components["schemas"]["RunTarget"] | null;
            /** @description Every probe, in order. */
            probes: components["schemas"]["RunProbe"][];
            /** @description What the search ended with; null while it goes on. */
            decision: components["schemas"]["RunDecision"] | null;
            /** @description The last launch of the job itself. */
            final_run: components["schemas"]["MachineLaunch"] | null;
            /** @description Dollars that the probes cost. */
            probing_usd: number;
            /** @description Seconds that the probes took, one after the other. */
            probing_s: number;
            /** @description partial, where probes are short runs of the job; or full. */
            mode: string;
            /** @description How the learning rate follows the batch. */
            learning_rate: string;
        };
        /**
         * Series
         * @description Points that belong together.
         */
        Series: {
            /** @description What they have in common. */
            name: string;
            /** @description In the order in which a line joins them. */
            points: components["schemas"]["Point"][];
            /**
             * @description `limit`: what is lost, or a line that should not be crossed; `quiet`: what only fills the gaps.
             * @default plain
             * @enum {string}
             */
            look: "plain" | "quiet" | "limit";
        };
        /**
         * ServeDecision
         * @description What a search for a serving configuration ended with.
         */
        ServeDecision: {
            /** @description What was chosen; null where nothing can be certified. */
            configuration: components["schemas"]["Machines"] | components["schemas"]["PricedFunctions"] | null;
            /** @description Whether the job ends within its limits, with `confidence`. */
            certified: boolean;
            /** @description The probability of that; null where there is no limit. */
            confidence: number | null;
            /** @description Why the search ended. */
            because: string;
            /** @description What finishing takes there. */
            forecast: components["schemas"]["RunForecast"] | null;
            /** @description The limit that nothing keeps. */
            binding: string | null;
            /** @description Limits that would be enough, the smallest step first. */
            relaxations: components["schemas"]["RunRelaxation"][];
            /**
             * @description Of an elastic job: what is expected of each configuration.
             * @default []
             */
            curve: components["schemas"]["CurvePoint"][];
            /** @description What all trials of it show together. */
            measured: components["schemas"]["LoadTest"] | null;
            /** @description What is known of its answers; null where the model is served as it is. */
            accuracy: string | null;
        };
        /**
         * ServeRun
         * @description A run of `mlcd serve`: it ends with its decision.
         */
        ServeRun: {
            /** @description The run's name. */
            run: string;
            /**
             * @description The planner's name.
             * @default serve
             * @constant
             */
            planner: "serve";
            /**
             * @description Where it stands.
             * @enum {string}
             */
            status: "searching" | "decided" | "infeasible" | "running" | "finished" | "failed" | "stopped";
            /** @description When it began: a time of day, ISO 8601. */
            started_at: string;
            /** @description The job's name. */
            job: string;
            /** @description What is asked of it. */
            goal: components["schemas"]["RunGoal"];
            /** @description The place that its probes run at. */
            on: string;
            /** @description live, simulated or recorded: only what is live costs money. */
            provenance: string;
            /** @description The search method. */
            method: string;
            /** @description Of what the method draws at random. */
            seed: number;
            /** @description Configurations that could be chosen. */
            configurations: number;
            /** @description Of these, what earlier runs have measured. */
            known_configurations: number;
            /** @description Probes that the limits did not allow. */
            refused: (components["schemas"]["RefusedMachines"] | components["schemas"]["RefusedFunctions"])[];
            /** @description What its owner was warned of. */
            warnings: string[];
            /** @description Dollars spent so far, all launches together. */
            spent_usd: number;
            /** @description Seconds on the run's clock. */
            elapsed_s: number;
            /** @description The version of MLCD that began it. */
            version: string;
            /**
             * @description Key figures that its planner adds.
             * @default []
             */
            facts: components["schemas"]["Fact"][];
            /**
             * @description Tables that its planner adds.
             * @default []
             */
            tables: components["schemas"]["Table"][];
            /**
             * @description Charts that its planner adds.
             * @default []
             */
            figures: components["schemas"]["Figure"][];
            /** @description What is served. */
            model: components["schemas"]["ServedModel"];
            /** @description Latencies that are asked for. */
            caps: components["schemas"]["RunCap"][];
            /** @description Answers a second that are asked for. */
            min_rate: number | null;
            /** @description What a rate counts: requests or tokens. */
            counted: string;
            /** @description The unit of a rate. */
            unit: string;
            /** @description How trials send requests: open or closed. */
            arrivals: string;
            /** @description Trials at the most. */
            most_trials: number | null;
            /** @description Where it will be deployed, if trials ran on that server. */
            target: string | null;
            /** @description Of int8; null where nothing was compared. */
            agreement: components["schemas"]["RunAgreement"] | null;
            /** @description What a pass is made of, the longest first. */
            operators: components["schemas"]["OperatorShare"][];
            /** @description Every trial, in order. */
            trials: components["schemas"]["RunTrial"][];
            /** @description What the search ended with; null while it goes on. */
            decision: components["schemas"]["ServeDecision"] | null;
        };
        /**
         * ServedModel
         * @description A model that is to be served.
         */
        ServedModel: {
            /** @description The model's name. */
            name: string;
            /** @description The family of architectures that it is of. */
            family: string;
            /** @description The kind of its input, such as image224. */
            inputs: string;
            /** @description Its file. */
            path: string;
            /** @description Its weights, in 2**20 bytes. */
            weights_mb: number | null;
            /** @description Its parameters, in billions. */
            parameters_billion: number | null;
        };
        /**
         * Spend
         * @description What was spent, real dollars apart from simulated and recorded ones.
         */
        Spend: {
            /** @description By kind of money: real, simulated, recorded. */
            by_provenance: components["schemas"]["SpendSource"][];
            /** @description By member, highest first. */
            by_person: components["schemas"]["SpendShare"][];
            /** @description By team, highest first. */
            by_team: components["schemas"]["SpendShare"][];
            /** @description By the month in which the runs began, in order. */
            by_month: components["schemas"]["SpendMonth"][];
        };
        /**
         * SpendMonth
         * @description What the runs that began in a month have spent.
         */
        SpendMonth: {
            /** @description The month, such as 2026-11. */
            month: string;
            /** @description Dollars, simulated and recorded ones included. */
            usd: number;
            /** @description Real dollars alone. */
            live_usd: number;
            /** @description How many runs. */
            runs: number;
        };
        /**
         * SpendPoint
         * @description Where a run stood after a launch.
         */
        SpendPoint: {
            /** @description Seconds on the run's clock. */
            elapsed_s: number;
            /** @description Dollars spent so far. */
            spent_usd: number;
            /** @description Dollars that had to be kept then to finish. */
            kept_usd: number | null;
            /** @description Seconds that had to be kept then to finish. */
            kept_s: number | null;
            /** @description The configuration of the launch; empty at the beginning. */
            label: string;
            /**
             * @description Whether it was a probe, or the job itself.
             * @enum {string}
             */
            purpose: "probe" | "run";
        };
        /**
         * SpendShare
         * @description What a person or a team has spent.
         */
        SpendShare: {
            /** @description The member or team; null: runs without one. */
            name: string | null;
            /** @description Dollars, simulated and recorded ones included. */
            usd: number;
            /** @description Real dollars alone. */
            live_usd: number;
            /** @description How many runs. */
            runs: number;
        };
        /**
         * SpendSource
         * @description What runs of one kind of cloud have spent.
         */
        SpendSource: {
            /**
             * @description Only live runs cost real money.
             * @enum {string}
             */
            name: "live" | "simulated" | "recorded";
            /** @description Dollars. */
            usd: number;
            /** @description How many runs. */
            runs: number;
        };
        /**
         * Spending
         * @description What was spent, against the limits.
         */
        Spending: {
            /** @description Dollars that may be spent; null for no limit. */
            budget_usd: number | null;
            /** @description Seconds that it may take; null for no limit. */
            deadline_s: number | null;
            /** @description From nothing on, one after each launch. */
            points: components["schemas"]["SpendPoint"][];
        };
        /**
         * StageResult
         * @description A stage of a tuning run as it went, beside its plan.
         */
        StageResult: {
            /** @description Functions that train together. */
            functions: number;
            /** @description Memory of each, in MB. */
            memory_mb: number;
            /** @description The storage through which they exchange gradients. */
            storage: string;
            /** @description Its number, from 1 on. */
            stage: number;
            /** @description Trials of the stage. */
            trials: number;
            /** @description Trials that have reported anything. */
            trials_told: number;
            /** @description Trials that go on; null while that is not known. */
            kept: number | null;
            /** @description Epochs of each trial. */
            epochs: number;
            /** @description The best trial at its end. */
            best_trial: number | null;
            /** @description The loss of that trial. */
            best_loss: number | null;
            /** @description How long it took. */
            seconds: number;
            /** @description What it cost. */
            usd: number;
            /** @description Seconds that were planned. */
            planned_s: number | null;
            /** @description Dollars that were planned. */
            planned_usd: number | null;
            /** @description Attempts of functions that came to nothing. */
            retries: number;
            /** @description How each of its launches ended. */
            launches: string[];
        };
        /**
         * StoragePrice
         * @description What a storage costs.
         */
        StoragePrice: {
            /** @description Dollars for a request. */
            usd_per_request: number;
            /** @description Dollars for a minute that its server is up. */
            usd_per_minute: number;
            /** @description The largest object, in MB; null for no limit. */
            largest_mb: number | null;
        };
        /**
         * StorageSpeed
         * @description How fast a storage is.
         */
        StorageSpeed: {
            /** @description Seconds of a request. */
            latency_s: number;
            /** @description Megabytes a second. */
            mb_per_s: number;
            /** @description Exchanges that were measured. */
            exchanges: components["schemas"]["ExchangeTime"][];
        };
        /**
         * Summary
         * @description Everything a list of runs shows, filters and sorts by; small, since all of them are kept at hand.
         */
        Summary: {
            /** @description The run's name. */
            run: string;
            /** @description train, scale, serve, tune, functions, or a planner of another package. */
            kind: string;
            /** @description The job's name. */
            job: string;
            /**
             * @description Where it stands.
             * @enum {string}
             */
            status: "queued" | "refused" | "searching" | "decided" | "infeasible" | "running" | "finished" | "failed" | "stopped";
            /** @description Whether a process drives it now. */
            driven: boolean;
            /** @description The member whose run it is; null for one of the command line. */
            owner: string | null;
            /** @description Their team. */
            team: string | null;
            /** @description When it began, or was asked for: a time of day, ISO 8601. */
            started_at: string;
            /** @description The place that its probes run at. */
            on: string;
            /** @description live, simulated or recorded; null before it has begun. */
            provenance: string | null;
            /** @description Its objective: fastest, cheapest, knee or per-dollar. */
            goal: string;
            /** @description All that is asked of it, in words. */
            goal_words: string;
            /** @description Probes that were made. */
            tried: number;
            /** @description What was decided; null where nothing is. */
            chosen: string | null;
            /** @description Dollars spent so far. */
            spent_usd: number;
            /** @description Seconds on the run's clock. */
            elapsed_s: number;
            /** @description Dollars that may be spent; null for no limit. */
            budget_usd: number | null;
            /** @description Seconds that it may take; null for no limit. */
            deadline_s: number | null;
            /** @description The reason of the last entry that has one. */
            because: string;
            /** @description The project that it belongs to; null for none. */
            project: string | null;
            /**
             * @description Its tags.
             * @default []
             */
            tags: string[];
            /**
             * @description What somebody noted of it: plain text; empty for nothing.
             * @default
             */
            note: string;
            /**
             * @description Whether lists leave it out unless they are asked for it.
             * @default false
             */
            archived: boolean;
        };
        /**
         * Table
         * @description A table.
         */
        Table: {
            /** @description Its heading. */
            title: string;
            /** @description From left to right. */
            columns: components["schemas"]["Column"][];
            /** @description From top to bottom; each with a cell for every column. */
            rows: (string | number | boolean | null)[][];
        };
        /**
         * TeamAnswer
         * @description A team and its budget.
         */
        TeamAnswer: {
            /** @description What may be spent; null for no limit. */
            budget_usd: number | null;
            /**
             * @description The budget's period: in total, or each month.
             * @enum {string}
             */
            budget_per: "total" | "month";
            /** @description What was spent in the period. */
            spent_usd: number;
            /** @description What runs can still spend; null if one of them has no limit. */
            claimed_usd: number | null;
            /** @description Its name. */
            name: string;
        };
        /**
         * TeamBudget
         * @description The budget of a team's runs together, null for no limit; without `budget_per` its period stays.
         */
        TeamBudget: {
            /** @description Dollars; null for no limit. */
            budget_usd: number | null;
            /** @description The period: in total, or each month; null: as before. */
            budget_per?: ("total" | "month") | null;
        };
        /**
         * TeamsAnswer
         * @description All teams.
         */
        TeamsAnswer: {
            /** @description By name. */
            teams: components["schemas"]["TeamAnswer"][];
        };
        /**
         * Token
         * @description The token that an admin gave you.
         */
        Token: {
            /** @description Your token, mlcd_... */
            token: string;
        };
        /**
         * TokenAnswer
         * @description A member and their new token, which is shown only once.
         */
        TokenAnswer: {
            /** @description Their name. */
            member: string;
            /** @description Their token. */
            token: string;
        };
        /**
         * TokenState
         * @description A token; its secret is not kept.
         */
        TokenState: {
            /** @description Its name. */
            name: string;
            /**
             * @description What it allows.
             * @enum {string}
             */
            scope: "read" | "run";
            /** @description When it was made: a time of day, ISO 8601. */
            created_at: string | null;
            /** @description When it expires; null: not before it is revoked. */
            expires_at: string | null;
            /** @description Its last use, to the minute; null for never. */
            used_at: string | null;
            /** @description Whether it has expired. */
            expired: boolean;
        };
        /**
         * Tradeoff
         * @description Time against cost of all measured configurations.
         */
        Tradeoff: {
            /** @description The run's name. */
            run: string;
            /** @description The fastest first. */
            points: components["schemas"]["TradeoffPoint"][];
            /** @description For an elastic run whose time is not predicted; `points` then assume all of the work. */
            ranking: components["schemas"]["Ranked"][];
            /** @description What the search cost. */
            spent_usd: number;
            /** @description What the search took. */
            elapsed_s: number;
            /** @description The run's budget; null for no limit. */
            budget_usd: number | null;
            /** @description The run's deadline; null for no limit. */
            deadline_s: number | null;
            /** @description Ranges for sliders. */
            ranges: components["schemas"]["LimitRanges"];
        };
        /**
         * TradeoffPoint
         * @description What the whole job takes on a configuration, or by a plan, probes included; `worst`: the worst case.
         */
        TradeoffPoint: {
            /** @description The configuration, or the plan. */
            label: string;
            /** @description What is drawn alike. */
            series: string;
            /** @description Expected seconds. */
            seconds: number;
            /** @description Expected dollars. */
            usd: number;
            /** @description Seconds at the most; null where there is no end. */
            worst_seconds: number | null;
            /** @description Dollars at the most; null where there is no end. */
            worst_usd: number | null;
            /** @description Whether it ends within the limits. */
            certified: boolean;
            /** @description Whether it is the decision. */
            chosen: boolean;
            /** @description Whether it was probed. */
            measured: boolean;
            /**
             * @description Whether nothing else is both faster and cheaper.
             * @default false
             */
            frontier: boolean;
            /**
             * @description Whether more money buys little speed from here on.
             * @default false
             */
            knee: boolean;
        };
        /**
         * TrainRun
         * @description A run of `mlcd train` on machines.
         */
        TrainRun: {
            /** @description The run's name. */
            run: string;
            /**
             * @description The planner's name.
             * @default train
             * @constant
             */
            planner: "train";
            /**
             * @description Where it stands.
             * @enum {string}
             */
            status: "searching" | "decided" | "infeasible" | "running" | "finished" | "failed" | "stopped";
            /** @description When it began: a time of day, ISO 8601. */
            started_at: string;
            /** @description The job's name. */
            job: string;
            /** @description What is asked of it. */
            goal: components["schemas"]["RunGoal"];
            /** @description The place that its probes run at. */
            on: string;
            /** @description live, simulated or recorded: only what is live costs money. */
            provenance: string;
            /** @description The search method. */
            method: string;
            /** @description Of what the method draws at random. */
            seed: number;
            /** @description Configurations that could be chosen. */
            configurations: number;
            /** @description Of these, what earlier runs have measured. */
            known_configurations: number;
            /** @description Probes that the limits did not allow. */
            refused: (components["schemas"]["RefusedMachines"] | components["schemas"]["RefusedFunctions"])[];
            /** @description What its owner was warned of. */
            warnings: string[];
            /** @description Dollars spent so far, all launches together. */
            spent_usd: number;
            /** @description Seconds on the run's clock. */
            elapsed_s: number;
            /** @description The version of MLCD that began it. */
            version: string;
            /**
             * @description Key figures that its planner adds.
             * @default []
             */
            facts: components["schemas"]["Fact"][];
            /**
             * @description Tables that its planner adds.
             * @default []
             */
            tables: components["schemas"]["Table"][];
            /**
             * @description Charts that its planner adds.
             * @default []
             */
            figures: components["schemas"]["Figure"][];
            /** @description All the work of the job, in samples. */
            work_samples: number;
            /** @description Of these, what a checkpoint holds. */
            saved_samples: number;
            /** @description The metric that ends the job. */
            target: components["schemas"]["RunTarget"] | null;
            /** @description Every probe, in order. */
            probes: components["schemas"]["RunProbe"][];
            /** @description What the search ended with; null while it goes on. */
            decision: components["schemas"]["RunDecision"] | null;
            /** @description The last launch of the job itself. */
            final_run: components["schemas"]["MachineLaunch"] | null;
            /** @description Dollars that the probes cost. */
            probing_usd: number;
            /** @description Seconds that the probes took, one after the other. */
            probing_s: number;
        };
        /**
         * TransferTime
         * @description One object that was sent.
         */
        TransferTime: {
            /** @description Megabytes. */
            mb: number;
            /** @description What it took. */
            seconds: number;
        };
        /**
         * TrialResult
         * @description A trial of a tuning run as it went.
         */
        TrialResult: {
            /** @description Its number. */
            trial: number;
            /** @description What was drawn for it, by name. */
            hyperparameters: {
                [key: string]: number;
            };
            /** @description Its loss after each stage; null where it diverged. */
            losses: (number | null)[];
            /** @description Epochs that it has done. */
            epochs: number;
            /** @description Whether others went on instead. */
            stopped: boolean;
            /** @description Whether it is the best so far. */
            best: boolean;
        };
        /**
         * Tried
         * @description The result of a test message.
         */
        Tried: {
            /** @description Why the message did not arrive; empty: it did. */
            trouble: string;
        };
        /**
         * TuneDecision
         * @description What a search for allocations ended with.
         */
        TuneDecision: {
            /** @description The decision in a sentence. */
            words: string;
            /** @description Every plan that keeps the limits, the chosen one first. */
            plans: components["schemas"]["FunctionPlan"][];
            /** @description What the plans rest on. */
            calibration: components["schemas"]["PlatformCalibration"] | null;
            /** @description What was chosen; null where nothing can be certified. */
            configuration: components["schemas"]["Machines"] | components["schemas"]["PricedFunctions"] | null;
            /** @description Whether the job ends within its limits, with `confidence`. */
            certified: boolean;
            /** @description The probability of that; null where there is no limit. */
            confidence: number | null;
            /** @description Why the search ended. */
            because: string;
            /** @description What finishing takes there. */
            forecast: components["schemas"]["RunForecast"] | null;
            /** @description The limit that nothing keeps. */
            binding: string | null;
            /** @description Limits that would be enough, the smallest step first. */
            relaxations: components["schemas"]["RunRelaxation"][];
            /**
             * @description Of an elastic job: what is expected of each configuration.
             * @default []
             */
            curve: components["schemas"]["CurvePoint"][];
        };
        /**
         * TuneRun
         * @description A run on functions: of `mlcd tune`, or of `mlcd train --on functions`.
         */
        TuneRun: {
            /** @description What is trained. */
            workload: components["schemas"]["RunWorkload"];
            /**
             * @description Whether one model is trained, or many trials are.
             * @enum {string}
             */
            phase: "training" | "tuning";
            /** @description How hyperparameters are searched; null of a training run. */
            tuning: components["schemas"]["RunTuning"] | null;
            /** @description What may be allocated. */
            limits: components["schemas"]["FunctionLimits"];
            /** @description What that costs. */
            prices: components["schemas"]["FunctionPrices"] | null;
            /** @description The run's name. */
            run: string;
            /**
             * @description The planner's name.
             * @default tune
             * @constant
             */
            planner: "tune";
            /**
             * @description Where it stands.
             * @enum {string}
             */
            status: "searching" | "decided" | "infeasible" | "running" | "finished" | "failed" | "stopped";
            /** @description When it began: a time of day, ISO 8601. */
            started_at: string;
            /** @description The job's name. */
            job: string;
            /** @description What is asked of it. */
            goal: components["schemas"]["RunGoal"];
            /** @description The place that its probes run at. */
            on: string;
            /** @description live, simulated or recorded: only what is live costs money. */
            provenance: string;
            /** @description The search method. */
            method: string;
            /** @description Of what the method draws at random. */
            seed: number;
            /** @description Configurations that could be chosen. */
            configurations: number;
            /** @description Of these, what earlier runs have measured. */
            known_configurations: number;
            /** @description Probes that the limits did not allow. */
            refused: (components["schemas"]["RefusedMachines"] | components["schemas"]["RefusedFunctions"])[];
            /** @description What its owner was warned of. */
            warnings: string[];
            /** @description Dollars spent so far, all launches together. */
            spent_usd: number;
            /** @description Seconds on the run's clock. */
            elapsed_s: number;
            /** @description The version of MLCD that began it. */
            version: string;
            /**
             * @description Key figures that its planner adds.
             * @default []
             */
            facts: components["schemas"]["Fact"][];
            /**
             * @description Tables that its planner adds.
             * @default []
             */
            tables: components["schemas"]["Table"][];
            /**
             * @description Charts that its planner adds.
             * @default []
             */
            figures: components["schemas"]["Figure"][];
            /** @description The metric that ends the job. */
            target: components["schemas"]["RunTarget"] | null;
            /** @description Every probe, in order. */
            probes: components["schemas"]["FunctionProbe"][];
            /** @description What the search ended with; null while it goes on. */
            decision: components["schemas"]["TuneDecision"] | null;
            /** @description The best trade-offs of one epoch, the fastest first. */
            boundary: components["schemas"]["EpochAllocation"][];
            /** @description Of a tuning run: its stages as they went. */
            stages: components["schemas"]["StageResult"][];
            /** @description Of a training run: its epochs as they went. */
            epochs: components["schemas"]["EpochResult"][];
            /** @description The best trial. */
            best: components["schemas"]["BestTrial"] | null;
            /**
             * @description Of a tuning run: trials that have reported, the furthest and best first, 200 at most.
             * @default []
             */
            trials: components["schemas"]["TrialResult"][];
            /** @description Why the run ended; null while it goes on. */
            ended: string | null;
            /** @description Dollars that the probes cost. */
            probing_usd: number;
            /** @description Seconds that the probes took, one after the other. */
            probing_s: number;
        };
        /**
         * UnderWay
         * @description A launch that is reserved and not settled.
         */
        UnderWay: {
            /** @description The launch's name. */
            label: string;
            /**
             * @description Whether it is a probe, or the job itself.
             * @enum {string}
             */
            purpose: "probe" | "run";
            /** @description The name of its configuration. */
            configuration: string;
            /** @description Why it was made. */
            because: string;
            /** @description Dollars that are reserved for it. */
            worst_usd: number;
            /** @description Seconds that are reserved for it. */
            worst_s: number;
            /** @description When it began, on the run's clock. */
            since_s: number;
        };
        /**
         * UnreadableModel
         * @description A file that cannot be read as a model.
         */
        UnreadableModel: {
            /** @description The file's name. */
            name: string;
            /** @description What is wrong with it. */
            because: string;
        };
        /**
         * Uploaded
         * @description A model that can be served, identified by the SHA-256 of its file.
         */
        Uploaded: {
            /** @description The SHA-256 of its file: what to submit. */
            upload: string;
            /** @description The file's name. */
            name: string;
            /** @description Its bytes. */
            size: number;
            /** @description What is known about it. */
            facts: components["schemas"]["UploadedFacts"];
            /** @description Its operators, the most expensive first. */
            operators: components["schemas"]["UploadedOperator"][];
        };
        /**
         * UploadedFacts
         * @description What is known about a model before any trial.
         */
        UploadedFacts: {
            /** @description Its family of architectures. */
            family: string;
            /** @description The kind of its input. */
            inputs: string;
            /** @description Its weights, in 2**20 bytes. */
            weights_mb: number | null;
            /** @description Its parameters, in billions. */
            parameters: number | null;
            /** @description What could not be found out; else empty. */
            note: string;
        };
        /**
         * UploadedOperator
         * @description A kind of operator in a model.
         */
        UploadedOperator: {
            /** @description The operator. */
            kind: string;
            /** @description Its calls in one forward pass. */
            count: number;
            /** @description Its share of the pass's time; null if the model could not be run. */
            share: number | null;
        };
        /**
         * UsagePoint
         * @description Usage since the previous point; a value for each machine or GPU, null if it was not read.
         */
        UsagePoint: {
            /** @description Seconds since the record began. */
            t: number;
            /** @description Cores that were busy. */
            cpu: (number | null)[];
            /** @description Average memory in GiB, without reclaimable cache. */
            memory: (number | null)[];
            /** @description Peak memory in GiB, without reclaimable cache. */
            peak: (number | null)[];
            /** @description Percent of the time that each GPU was busy. */
            gpu: (number | null)[];
            /** @description Peak memory of each GPU in GiB. */
            gpu_memory: (number | null)[];
            /** @description Size in bytes of each process's log at this time. */
            logs: {
                [key: string]: number;
            };
        };
        /**
         * WhatIf
         * @description The decision under another goal.
         */
        WhatIf: {
            /** @description The run's name. */
            run: string;
            /** @description The objective. */
            goal: string;
            /** @description The goal and the limits in words. */
            goal_words: string;
            /** @description What `mlcd what-if -o json` prints. */
            decision: components["schemas"]["ServeDecision"] | components["schemas"]["TuneDecision"] | components["schemas"]["RunDecision"];
            /** @description The chosen configuration as the trade-off names it. */
            label: string | null;
            /** @description The decision in a sentence. */
            words: string;
            /** @description The certificate of the decision. */
            certificate: components["schemas"]["Certificate"] | null;
            /** @description A clearly better choice that is expected to fit but not certified. */
            not_certain: string | null;
        };
        /**
         * WorkMismatch
         * @description What a job reported beside what its `work` states.
         */
        WorkMismatch: {
            /** @description Samples that it reported. */
            reported: number;
            /** @description Samples that were stated. */
            stated: number;
        };
        /**
         * WorkerState
         * @description A worker. An older version of MLCD does not report its host, process and slots.
         */
        WorkerState: {
            /** @description Its number in the queue. */
            number: number;
            /** @description The machine it runs on; empty if not reported. */
            host: string;
            /** @description Its process id there. */
            process: number | null;
            /** @description The most runs that it drives at once. */
            slots: number | null;
            /** @description Its version of MLCD; empty if not reported. */
            version: string;
            /** @description When it started. */
            since: string | null;
            /** @description Its last heartbeat. */
            seen_at: string;
            /** @description Seconds since the last heartbeat. */
            silent_s: number;
            /** @description Whether the last heartbeat is recent. */
            alive: boolean;
            /** @description The runs that it drives. */
            runs: components["schemas"]["DrivenRun"][];
        };
        /**
         * WorkersAnswer
         * @description The workers and the queue at one moment.
         */
        WorkersAnswer: {
            /** @description The time of this answer. */
            at: string;
            /** @description Live workers, and dead ones that still have a run. */
            workers: components["schemas"]["WorkerState"][];
            /** @description The queue, in the order of turns. */
            waiting: components["schemas"]["QueuedRun"][];
            /** @description Why no run is being taken; else empty. */
            trouble: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Accepted = components['schemas']['Accepted'];
export type AddedReceiver = components['schemas']['AddedReceiver'];
export type Address = components['schemas']['Address'];
export type Again = components['schemas']['Again'];
export type Ahead = components['schemas']['Ahead'];
export type AllocatedStage = components['schemas']['AllocatedStage'];
export type Asked = components['schemas']['Asked'];
export type AskedReceiver = components['schemas']['AskedReceiver'];
export type AuditAnswer = components['schemas']['AuditAnswer'];
export type AuditedAction = components['schemas']['AuditedAction'];
export type Axis = components['schemas']['Axis'];
export type BestTrial = components['schemas']['BestTrial'];
export type CalibrationResult = components['schemas']['CalibrationResult'];
export type Certificate = components['schemas']['Certificate'];
export type CertificateTerm = components['schemas']['CertificateTerm'];
export type Column = components['schemas']['Column'];
export type ComparedCell = components['schemas']['ComparedCell'];
export type ComparedPaths = components['schemas']['ComparedPaths'];
export type ComparedRow = components['schemas']['ComparedRow'];
export type ComparedRun = components['schemas']['ComparedRun'];
export type ComparedSection = components['schemas']['ComparedSection'];
export type Comparison = components['schemas']['Comparison'];
export type ComputeSpeed = components['schemas']['ComputeSpeed'];
export type Credentials = components['schemas']['Credentials'];
export type CurvePoint = components['schemas']['CurvePoint'];
export type DrivenRun = components['schemas']['DrivenRun'];
export type DriverAnswer = components['schemas']['DriverAnswer'];
export type EpochAllocation = components['schemas']['EpochAllocation'];
export type EpochResult = components['schemas']['EpochResult'];
export type EventState = components['schemas']['EventState'];
export type Example = components['schemas']['Example'];
export type Examples = components['schemas']['Examples'];
export type ExchangeTime = components['schemas']['ExchangeTime'];
export type Export = components['schemas']['Export'];
export type Fact = components['schemas']['Fact'];
export type Figure = components['schemas']['Figure'];
export type FirstProbe = components['schemas']['FirstProbe'];
export type FunctionLimits = components['schemas']['FunctionLimits'];
export type FunctionPlan = components['schemas']['FunctionPlan'];
export type FunctionPrices = components['schemas']['FunctionPrices'];
export type FunctionProbe = components['schemas']['FunctionProbe'];
export type GoOn = components['schemas']['GoOn'];
export type GradientNoise = components['schemas']['GradientNoise'];
export type Headway = components['schemas']['Headway'];
export type Health = components['schemas']['Health'];
export type HowDown = components['schemas']['HowDown'];
export type JobFile = components['schemas']['JobFile'];
export type JobFingerprint = components['schemas']['JobFingerprint'];
export type JobIdentity = components['schemas']['JobIdentity'];
export type JobMistake = components['schemas']['JobMistake'];
export type JobMistakes = components['schemas']['JobMistakes'];
export type JobText = components['schemas']['JobText'];
export type Knowledge = components['schemas']['Knowledge'];
export type KnowledgeBase = components['schemas']['KnowledgeBase'];
export type KnownModel = components['schemas']['KnownModel'];
export type LabelChange = components['schemas']['LabelChange'];
export type LabelUse = components['schemas']['LabelUse'];
export type LabelsInUse = components['schemas']['LabelsInUse'];
export type LearnedMachine = components['schemas']['LearnedMachine'];
export type LearnedModel = components['schemas']['LearnedModel'];
export type LearnedTarget = components['schemas']['LearnedTarget'];
export type LedgerEntries = components['schemas']['LedgerEntries'];
export type LedgerEntry = components['schemas']['LedgerEntry'];
export type LedgerRow = components['schemas']['LedgerRow'];
export type LedgerRows = components['schemas']['LedgerRows'];
export type LimitLine = components['schemas']['LimitLine'];
export type LimitRanges = components['schemas']['LimitRanges'];
export type LoadTest = components['schemas']['LoadTest'];
export type LogLine = components['schemas']['LogLine'];
export type LogMatches = components['schemas']['LogMatches'];
export type LogParts = components['schemas']['LogParts'];
export type LogWindow = components['schemas']['LogWindow'];
export type Logs = components['schemas']['Logs'];
export type MachineLaunch = components['schemas']['MachineLaunch'];
export type MachineUsage = components['schemas']['MachineUsage'];
export type Machines = components['schemas']['Machines'];
export type MadeToken = components['schemas']['MadeToken'];
export type Me = components['schemas']['Me'];
export type MeasuredGpu = components['schemas']['MeasuredGpu'];
export type MeasuredMachine = components['schemas']['MeasuredMachine'];
export type MemberAnswer = components['schemas']['MemberAnswer'];
export type MemberChange = components['schemas']['MemberChange'];
export type MembersAnswer = components['schemas']['MembersAnswer'];
export type Models = components['schemas']['Models'];
export type MostOf = components['schemas']['MostOf'];
export type MyTokens = components['schemas']['MyTokens'];
export type NewAccount = components['schemas']['NewAccount'];
export type NewMember = components['schemas']['NewMember'];
export type NewToken = components['schemas']['NewToken'];
export type NewsAnswer = components['schemas']['NewsAnswer'];
export type NotBegun = components['schemas']['NotBegun'];
export type OfferRow = components['schemas']['OfferRow'];
export type Offers = components['schemas']['Offers'];
export type OperatorShare = components['schemas']['OperatorShare'];
export type OtherLaunch = components['schemas']['OtherLaunch'];
export type OtherRun = components['schemas']['OtherRun'];
export type PageAnswer = components['schemas']['PageAnswer'];
export type PageCard = components['schemas']['PageCard'];
export type PathPoint = components['schemas']['PathPoint'];
export type PathStep = components['schemas']['PathStep'];
export type PeakOfMemory = components['schemas']['PeakOfMemory'];
export type PlatformCalibration = components['schemas']['PlatformCalibration'];
export type Point = components['schemas']['Point'];
export type Previewed = components['schemas']['Previewed'];
export type PricedFunctions = components['schemas']['PricedFunctions'];
export type Problem = components['schemas']['Problem'];
export type Purpose = components['schemas']['Purpose'];
export type QueuedRun = components['schemas']['QueuedRun'];
export type Ranked = components['schemas']['Ranked'];
export type ReceiverState = components['schemas']['ReceiverState'];
export type RefusedFunctions = components['schemas']['RefusedFunctions'];
export type RefusedMachines = components['schemas']['RefusedMachines'];
export type Returned = components['schemas']['Returned'];
export type RunAction = components['schemas']['RunAction'];
export type RunAgreement = components['schemas']['RunAgreement'];
export type RunCap = components['schemas']['RunCap'];
export type RunDecision = components['schemas']['RunDecision'];
export type RunFinish = components['schemas']['RunFinish'];
export type RunForecast = components['schemas']['RunForecast'];
export type RunGoal = components['schemas']['RunGoal'];
export type RunLabels = components['schemas']['RunLabels'];
export type RunPage = components['schemas']['RunPage'];
export type RunProbe = components['schemas']['RunProbe'];
export type RunRelaxation = components['schemas']['RunRelaxation'];
export type RunTable = components['schemas']['RunTable'];
export type RunTableColumn = components['schemas']['RunTableColumn'];
export type RunTables = components['schemas']['RunTables'];
export type RunTarget = components['schemas']['RunTarget'];
export type RunTrial = components['schemas']['RunTrial'];
export type RunTuning = components['schemas']['RunTuning'];
export type RunWorkload = components['schemas']['RunWorkload'];
export type Runs = components['schemas']['Runs'];
export type ScaleRun = components['schemas']['ScaleRun'];
export type Series = components['schemas']['Series'];
export type ServeDecision = components['schemas']['ServeDecision'];
export type ServeRun = components['schemas']['ServeRun'];
export type ServedModel = components['schemas']['ServedModel'];
export type Spend = components['schemas']['Spend'];
export type SpendMonth = components['schemas']['SpendMonth'];
export type SpendPoint = components['schemas']['SpendPoint'];
export type SpendShare = components['schemas']['SpendShare'];
export type SpendSource = components['schemas']['SpendSource'];
export type Spending = components['schemas']['Spending'];
export type StageResult = components['schemas']['StageResult'];
export type StoragePrice = components['schemas']['StoragePrice'];
export type StorageSpeed = components['schemas']['StorageSpeed'];
export type Summary = components['schemas']['Summary'];
export type Table = components['schemas']['Table'];
export type TeamAnswer = components['schemas']['TeamAnswer'];
export type TeamBudget = components['schemas']['TeamBudget'];
export type TeamsAnswer = components['schemas']['TeamsAnswer'];
export type Token = components['schemas']['Token'];
export type TokenAnswer = components['schemas']['TokenAnswer'];
export type TokenState = components['schemas']['TokenState'];
export type Tradeoff = components['schemas']['Tradeoff'];
export type TradeoffPoint = components['schemas']['TradeoffPoint'];
export type TrainRun = components['schemas']['TrainRun'];
export type TransferTime = components['schemas']['TransferTime'];
export type TrialResult = components['schemas']['TrialResult'];
export type Tried = components['schemas']['Tried'];
export type TuneDecision = components['schemas']['TuneDecision'];
export type TuneRun = components['schemas']['TuneRun'];
export type UnderWay = components['schemas']['UnderWay'];
export type UnreadableModel = components['schemas']['UnreadableModel'];
export type Uploaded = components['schemas']['Uploaded'];
export type UploadedFacts = components['schemas']['UploadedFacts'];
export type UploadedOperator = components['schemas']['UploadedOperator'];
export type UsagePoint = components['schemas']['UsagePoint'];
export type WhatIf = components['schemas']['WhatIf'];
export type WorkMismatch = components['schemas']['WorkMismatch'];
export type WorkerState = components['schemas']['WorkerState'];
export type WorkersAnswer = components['schemas']['WorkersAnswer'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;

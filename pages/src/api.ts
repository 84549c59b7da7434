/** A typed client of the API. Every error is an `ApiError` with the server's one-line message. */

import { answered, inReport } from "./parts/report";

export const ROOT = "/api/v1";
export const SIGNED_OUT = "mlcd:signed-out";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The remaining budget, if the submission exceeds it. */
    readonly leftUsd: number | null = null,
    readonly retryAfterS: number | null = null,
    /** What a run may spend, if it costs real money and was not agreed to. Sent again with `yes`, it starts. */
    readonly asks: string | null = null,
  ) {
    super(message);
  }

  /** Whether a retry may succeed. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 503;
  }
}

type Query = Record<string, string | number | boolean | null | undefined>;

/** '/runs' and {status: 'decided', owner: ''} -> '/runs?status=decided'. */
export function withQuery(path: string, query: Query): string {
  const words = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(words.map(([name, value]) => [name, String(value)])).toString();
  return search ? `${path}?${search}` : path;
}

/** '/runs/' with the name of a run that may hold any character. */
export function runPath(run: string, rest = ""): string {
  return `/runs/${encodeURIComponent(run)}${rest}`;
}

export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  if (inReport()) {
    const found = answered<T>(path);
    return found === null ? Promise.reject(new ApiError(404, "It is not part of this report.")) : Promise.resolve(found);
  }
  return request<T>(path, signal ? { signal } : {});
}

export function send<T = void>(
  method: "POST" | "PUT" | "PATCH" | "DELETE",
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  if (body === undefined) return request<T>(path, { method });
  return request<T>(path, {
    method,
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json" },
    ...(signal && { signal }),
  });
}

export function upload<T>(path: string, file: File): Promise<T> {
  return request<T>(path, { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } });
}

async function request<T>(path: string, init: RequestInit): Promise<T> {
  const headers = { ...init.headers, Accept: "application/json", "X-MLCD": "1" }; // other sites cannot send X-MLCD
  let answer: Response;
  try {
    answer = await fetch(ROOT + path, { ...init, headers, credentials: "same-origin" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "MLCD does not answer; is it still running? This page retries automatically.");
  }
  if (!answer.ok) throw await refusal(answer);
  if (answer.status === 204) return undefined as T;
  return (await answer.json()) as T;
}

async function refusal(answer: Response): Promise<ApiError> {
  const said: unknown = await answer.json().catch(() => null);
  const words = said !== null && typeof said === "object" ? (said as Record<string, unknown>) : {};
  const line = typeof words["error"] === "string" ? words["error"] : `the server answered ${answer.status}`;
  const left = typeof words["left_usd"] === "number" ? words["left_usd"] : null;
  const asks = typeof words["asks"] === "string" ? words["asks"] : null;
  const retry = Number(answer.headers.get("Retry-After"));
  if (answer.status === 401) window.dispatchEvent(new Event(SIGNED_OUT));
  return new ApiError(answer.status, line, left, retry > 0 ? retry : null, asks);
}

/** The message of anything that was thrown. */
export function line(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

import { parseExact } from '../fhir/index.ts'

/** `json` is exact JSON (`parseExact`), or undefined if the body is not JSON. */
export type FetchResult =
  | { readonly kind: 'answered'; readonly status: number; readonly json: unknown }
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'slow' }

/** Does not follow redirects, which could carry the bearer token to another host. */
export async function fetchJson(
  fetch: typeof globalThis.fetch,
  url: string,
  options: { readonly timeoutMs: number; readonly headers: Readonly<Record<string, string>> },
): Promise<FetchResult> {
  try {
    const response = await fetch(url, {
      headers: options.headers,
      redirect: 'manual',
      signal: AbortSignal.timeout(options.timeoutMs),
    })
    return { kind: 'answered', status: response.status, json: parseJson(await response.text()) }
  } catch (error) {
    return { kind: isTimeout(error) ? 'slow' : 'unreachable' }
  }
}

export function isTimeout(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause.name === 'TimeoutError' || cause.name === 'AbortError') return true
    if ('code' in cause && /TIMEOUT/.test(String(cause.code))) return true
  }
  return false
}

function parseJson(text: string): unknown {
  try {
    return parseExact(text)
  } catch {
    return undefined
  }
}

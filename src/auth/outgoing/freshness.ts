const LONGEST_MS = 24 * 3_600_000
/** RFC 9111, 4.2.2: without headers the cache decides. */
const UNSAID_MS = 60_000

/** RFC 9111, 4.2. */
export function computeFreshForMs(headers: Headers, now: number): number {
  const directives = (headers.get('cache-control') ?? '')
    .toLowerCase()
    .split(',')
    .map(part => part.trim())
  if (directives.includes('no-store') || directives.includes('no-cache')) return 0
  const maxAge = directives.map(part => /^max-age="?(\d{1,10})"?$/.exec(part)?.[1]).find(Boolean)
  if (maxAge !== undefined) return clamp((Number(maxAge) - readAge(headers)) * 1000)
  const expires = headers.get('expires')
  if (expires === null) return headers.has('cache-control') ? 0 : UNSAID_MS
  // RFC 9111, 5.3: an invalid date (`0`) means expired.
  const at = /GMT$/.test(expires) ? Date.parse(expires) : Number.NaN
  return Number.isNaN(at) ? 0 : clamp(at - now)
}

function readAge(headers: Headers): number {
  const age = Number(headers.get('age') ?? 0)
  return Number.isFinite(age) ? age : 0
}

function clamp(ms: number): number {
  return Math.min(Math.max(ms, 0), LONGEST_MS)
}

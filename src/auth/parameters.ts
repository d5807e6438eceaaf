import { isRecord } from '../fhir/index.ts'

/** The parameters of one request, by name (RFC 6749, 3.1). */
export interface Parameters {
  /** Undefined if the parameter is absent, empty or unreadable. */
  get(name: string): string | undefined
  /** Names of parameters that are repeated or contain a NUL, which PostgreSQL does not accept. */
  readonly unreadable: ReadonlySet<string>
}

/** Reads a parsed query or form. A parameter without a value is omitted (RFC 6749, 3.1). */
export function readParameters(source: unknown): Parameters {
  const values = new Map<string, string>()
  const unreadable = new Set<string>()
  for (const [name, value] of Object.entries(isRecord(source) ? source : {})) {
    if (typeof value !== 'string' || value.includes('\0')) unreadable.add(name)
    else if (value !== '') values.set(name, value)
  }
  return { get: name => values.get(name), unreadable }
}

import type { Misunderstood } from './interaction.ts'

// R4 datatypes.html#id
const ID = /^[A-Za-z0-9\-.]{1,64}$/

// No character of a FHIR path needs encoding, so an encoded one may hide something (ROUTE-7).
const SEGMENT = /^[A-Za-z0-9\-._$*]+$/

/** Whether FHIR allows a logical id or version id. `.` and `..` are refused as path segments. */
export function isId(text: string): boolean {
  return ID.test(text) && text !== '.' && text !== '..'
}

/** The segments of a path below the FHIR base, or why it is refused. */
export function parsePath(path: string): readonly string[] | Misunderstood {
  if (path === '' || path === '/') return []
  if (!path.startsWith('/'))
    return createMisunderstood(400, 'Cannot read path: it is not below the FHIR base')
  const segments = path.slice(1).split('/')
  for (const segment of segments) {
    if (segment === '') return createMisunderstood(400, 'Cannot read path: it has an empty segment')
    if (segment === '.' || segment === '..')
      return createMisunderstood(400, 'Cannot read path: it has a dot segment')
    if (segment.includes('%'))
      return createMisunderstood(400, 'Cannot read path: it has an encoded character')
    if (!SEGMENT.test(segment))
      return createMisunderstood(400, 'Cannot read path: it has a character that FHIR does not use')
  }
  return segments
}

export function createMisunderstood(status: Misunderstood['status'], text: string): Misunderstood {
  return { kind: 'misunderstood', status, text }
}

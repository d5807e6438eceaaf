import type { Place } from './report.ts'

/** What a file holds at a place; `bytes` is about how long it is. */
export type Candidate =
  | { readonly kind: 'resource'; readonly place: Place; readonly resource: unknown; readonly bytes: number }
  /** Something that is no resource, for this reason. */
  | { readonly kind: 'fault'; readonly place: Place; readonly fault: string }
  /** The file breaks off here. */
  | { readonly kind: 'broken'; readonly place: Place; readonly reason: string }

import { fill } from '../core/index.ts'
import {
  createOutcome,
  type IssueCode,
  type OperationOutcome,
  type Resource,
  type Shape,
  shapeResponse,
} from '../fhir/index.ts'
import { bundleJson, entryJson, type Link } from './bundle-json.ts'

/** A resource that a search found. */
export interface SearchEntry {
  readonly type: string
  readonly id: string
  /** JSON as stored. */
  readonly text: string
  /** Grows with every write of a resource, as far as the backend knows; NaN where it does not. */
  readonly order: number
  /** Whether long strings are left out, because the resource is too large for a page. */
  readonly isPartial?: boolean
  /** The content without the exact digits of its decimals. */
  parse(): Resource
  /** See `StoredVersion` (stored-version.ts). */
  findPatients?(): readonly string[] | undefined
}

/** What a search has found for a page. */
export interface FoundEntries {
  readonly matches: readonly SearchEntry[]
  readonly includes: readonly SearchEntry[]
  /** If it was requested, is known already, or is cheap to count. */
  readonly total: number | undefined
  /** The results that are missing, although no other page has them. */
  readonly lacks?: 'matches' | 'includes'
}

/** A page of a search as its caller gets it: the HTTP API sends it as a Bundle, another way in may take its values. */
export interface Searchset {
  readonly matches: readonly SearchEntry[]
  readonly includes: readonly SearchEntry[]
  /** What is said about the page (R4 search.html#outcome). */
  readonly outcomes: readonly OperationOutcome[]
  readonly total: number | undefined
  readonly links: readonly Link[]
}

export function createSearchset(
  { matches, includes, total, lacks }: FoundEntries,
  links: readonly Link[],
  /** The scopes without which its includes add nothing. */
  scopes: readonly string[] = [],
): Searchset {
  const partial = [...matches, ...includes].filter(it => it.isPartial)
  const outcomes = [
    ...(partial.length > 0 ? [describePartial(partial)] : []),
    ...(lacks ? [describe('incomplete', LACKS[lacks], 'warning')] : []),
    ...(scopes.length > 0
      ? [describe('suppressed', fill(LACKS.scopes, { scopes: scopes.join(' ') }), 'warning')]
      : []),
  ]
  return { matches, includes, outcomes, total, links }
}

/** JSON of the Bundle. */
export function formatSearchset(
  { matches, includes, outcomes, total, links }: Searchset,
  shape: Shape,
  baseUrl: string,
): string {
  const format = ({ type, id, text }: SearchEntry, mode: 'match' | 'include') => {
    const fullUrl = JSON.stringify(`${baseUrl}/${type}/${id}`)
    return `{"fullUrl":${fullUrl},"resource":${shapeResponse(text, shape)},"search":{"mode":"${mode}"}}`
  }
  const entries = [
    ...matches.map(entry => format(entry, 'match')),
    ...includes.map(entry => format(entry, 'include')),
    ...outcomes.map(it => entryJson({ resource: JSON.stringify(it), search: { mode: 'outcome' } })),
  ]
  return bundleJson({ type: 'searchset', total, links, entries })
}

/** Names the resources of a page whose long strings are left out. */
function describePartial(entries: readonly SearchEntry[]): OperationOutcome {
  const names = entries.map(({ type, id }) => `${type}/${id}`).join(', ')
  const text = `Too large for a page, and shown without attachments: ${names}. Read each by its id.`
  return describe('too-long', text, 'information')
}

const LACKS = {
  matches: 'Some results are missing: the FHIR server did not return all of them. Narrow the search.',
  includes:
    'Some included resources are missing: the FHIR server did not return all of them. Request fewer resources at once.',
  scopes: 'Included resources are left out, because the access lacks {scopes}.',
} as const satisfies Record<NonNullable<FoundEntries['lacks']> | 'scopes', string>

function describe(code: IssueCode, text: string, severity: 'information' | 'warning'): OperationOutcome {
  const { resourceType, issue } = createOutcome(code, text)
  return { resourceType, issue: issue.map(it => ({ ...it, severity })) }
}

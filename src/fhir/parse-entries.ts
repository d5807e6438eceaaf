import { fail, isFailure, isRecord, readText, toRecord } from '../core/index.ts'
import { ENTRY_LIMITS, type EntryLimits } from './body-limits.ts'
import type { Interaction, Misunderstood } from './interaction.ts'
import { misunderstand, toMisunderstood } from './interaction.ts'
import { findJsonExcess, parseExact } from './json.ts'
import { BUNDLE_PATCH_CHARACTERS } from './limits.ts'
import { parseInteraction } from './parse-interaction.ts'
import { isFhirPathPatch } from './patch/operations.ts'
import type { BUNDLES } from './reasons/bundles.ts'
import type { EXCESSES } from './reasons/excesses.ts'
import { type Because, failFor } from './reasons/reasons.ts'
import type { Preconditions } from './request.ts'
import type { Work } from './work.ts'

/** Why a Bundle cannot be processed at all. */
export type BadBundle = Because<keyof typeof BUNDLES | keyof typeof EXCESSES>

/** One entry of a batch or transaction, parsed but not yet validated. */
export interface Entry {
  readonly fullUrl: string | undefined
  readonly interaction: EntryInteraction | Misunderstood
  readonly body: unknown
  readonly preconditions: Preconditions
}

export interface Entries {
  readonly type: 'batch' | 'transaction'
  readonly entries: readonly Entry[]
}

/**
 * Parses the Bundle of a batch or transaction, with pauses. Its resources are validated later, one by one. An entry for which
 * no work is left is not parsed.
 */
export function* parseEntries(
  body: unknown,
  baseUrl: string,
  work: Work,
  entryLimits: EntryLimits = ENTRY_LIMITS,
): Generator<undefined, Entries | BadBundle> {
  if (!isRecord(body) || body.resourceType !== 'Bundle') return failFor('bundle-missing')
  const { type, entry = [] } = body
  if (type !== 'batch' && type !== 'transaction') return failFor('bundle-type-unsupported')
  if (!Array.isArray(entry)) return failFor('bundle-entry-not-a-list')
  const excess = findEntryExcess(body, entryLimits)
  if (excess) return excess
  if (countPatchCharacters(entry) > BUNDLE_PATCH_CHARACTERS)
    return failFor('bundle-patches-too-long', { most: BUNDLE_PATCH_CHARACTERS })
  const entries: Entry[] = []
  for (const candidate of entry) {
    const parsed = parseEntryCandidate(candidate, baseUrl, entries.length, work)
    if (isFailure(parsed)) return parsed
    entries.push(parsed)
    yield
  }
  return { type, entries }
}

/** Why a Bundle has too many entries; undefined if it has not. */
export function findEntryExcess(body: unknown, entryLimits: EntryLimits): BadBundle | undefined {
  const { type, entry } = toRecord(body)
  if ((type !== 'batch' && type !== 'transaction') || !Array.isArray(entry)) return undefined
  const most = entryLimits[type]
  return entry.length > most ? failFor('bundle-entries-too-many', { type, most }) : undefined
}

function parseEntryCandidate(candidate: unknown, baseUrl: string, at: number, work: Work): Entry | BadBundle {
  const request = isRecord(candidate) ? candidate.request : undefined
  if (!isRecord(candidate) || !isRecord(request)) return failAt(at, failFor('entry-without-request'))
  const { method, url } = request
  if (typeof method !== 'string' || typeof url !== 'string')
    return failAt(at, failFor('entry-request-incomplete'))
  const ifNoneExist = readText(request.ifNoneExist)
  const parameters = countParameters(url) + countParameters(ifNoneExist ?? '')
  const excess = work.count('entry') ?? work.count('parameter', parameters)
  const interaction = excess ? toMisunderstood(excess) : parseEntry({ method, url, ifNoneExist }, baseUrl)
  const patch = interaction.kind === 'patch' || interaction.kind === 'patch-conditional'
  return {
    fullUrl: readText(candidate.fullUrl),
    interaction,
    // Each patch is parsed when its entry is processed.
    get body() {
      return patch ? readPatch(candidate.resource) : candidate.resource
    },
    preconditions: {
      ifMatch: readText(request.ifMatch),
      ifNoneMatch: readText(request.ifNoneMatch),
      ifModifiedSince: readText(request.ifModifiedSince),
    },
  }
}

/** At least as many as a query has parameters and values, before it is parsed. A comma may be encoded. */
function countParameters(query: string): number {
  let count = 1
  for (const character of query) if (character === '&' || character === ',' || character === '%') count++
  return count
}

/** A JSON Patch comes in a Binary, a FHIRPath Patch as Parameters (R4 http.html#patch). Undefined if it cannot be read. */
function readPatch(resource: unknown): unknown {
  if (isFhirPathPatch(resource)) return resource
  const data = readJsonPatchData(resource)
  if (data === undefined) return undefined
  const text = Buffer.from(data, 'base64').toString('utf8')
  try {
    return findJsonExcess(text) ? undefined : parseExact(text)
  } catch {
    return undefined
  }
}

/** The base64 of a JSON Patch. */
function readJsonPatchData(resource: unknown): string | undefined {
  if (!isRecord(resource) || resource.resourceType !== 'Binary') return undefined
  if (resource.contentType !== 'application/json-patch+json') return undefined
  return readText(resource.data)
}

function countPatchCharacters(entry: readonly unknown[]): number {
  return entry.reduce<number>(
    (sum, it) => sum + (isRecord(it) ? (readJsonPatchData(it.resource)?.length ?? 0) : 0),
    0,
  )
}

/** A Bundle that fails because of one entry. */
export function failAt(entry: number, failure: BadBundle): BadBundle {
  return fail({ ...failure, entry })
}

/** `Bundle.entry.request` of a batch or transaction. */
export interface EntryRequest {
  readonly method: string
  readonly url: string
  readonly ifNoneExist?: string | undefined
}

/** The interaction of an entry: any but another Bundle. */
export type EntryInteraction = Exclude<Interaction, { readonly kind: 'bundle' }>

/**
 * The interaction of one entry, by the same rules as a single request. Its URL is relative to the base or absolute
 * below it. A Bundle inside a Bundle and a `_search` by POST (an entry has no form) are refused.
 */
export function parseEntry(request: EntryRequest, baseUrl: string): EntryInteraction | Misunderstood {
  const below = stripBase(request.url, baseUrl)
  const at = below.indexOf('?')
  const interaction = parseInteraction({
    method: request.method,
    baseUrl,
    path: at < 0 ? below : below.slice(0, at),
    query: at < 0 ? '' : below.slice(at + 1),
    headers: request.ifNoneExist === undefined ? {} : { 'if-none-exist': request.ifNoneExist },
  })
  if (interaction.kind === 'bundle') return misunderstand('bundle-in-bundle')
  return interaction
}

function stripBase(url: string, baseUrl: string): string {
  if (url.startsWith(`${baseUrl}/`) || url.startsWith(`${baseUrl}?`)) return url.slice(baseUrl.length)
  // An absolute URL of another server has an empty segment, which no path here has.
  return url.startsWith('/') ? url : `/${url}`
}

import { parseExact } from './exact-json.ts'
import { type Failed, fail, isFailure } from './failure.ts'
import type { Misunderstood } from './interaction.ts'
import { findJsonExcess } from './json-excess.ts'
import { BATCH_ENTRIES, BUNDLE_PATCH_CHARACTERS, TRANSACTION_ENTRIES } from './limits.ts'
import { type EntryInteraction, parseEntry } from './parse-entry.ts'
import { isFhirPathPatch } from './patch/operations.ts'
import { isRecord } from './record.ts'
import type { Preconditions } from './request.ts'

/** Why a Bundle cannot be processed at all. */
export type BadBundle = Failed &
  (
    | { readonly problem: 'bad-bundle'; readonly text: string; readonly entry?: number }
    | { readonly problem: 'too-costly'; readonly text: string }
  )

/** One entry of a batch or transaction, read but not yet judged. */
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

/** The entries of the Bundle that was posted to the base. The resources in it are looked at one by one, later. */
export function parseEntries(body: unknown, baseUrl: string): Entries | BadBundle {
  if (!isRecord(body) || body.resourceType !== 'Bundle') return bad('Cannot read body: expected a Bundle')
  const { type, entry = [] } = body
  if (type !== 'batch' && type !== 'transaction')
    return bad('Cannot process Bundle: expected one of type batch or transaction')
  if (!Array.isArray(entry)) return bad('Cannot process Bundle: its entry is not a list')
  const mostEntries = type === 'batch' ? BATCH_ENTRIES : TRANSACTION_ENTRIES
  if (entry.length > mostEntries) return createTooCostly(`a ${type} may have up to ${mostEntries} entries`)
  if (countPatchCharacters(entry) > BUNDLE_PATCH_CHARACTERS)
    return createTooCostly(`its JSON Patches have more than ${BUNDLE_PATCH_CHARACTERS} characters of base64`)
  const entries: Entry[] = []
  for (const [at, candidate] of entry.entries()) {
    const parsed = parseOne(candidate, baseUrl, at)
    if (isFailure(parsed)) return parsed
    entries.push(parsed)
  }
  return { type, entries }
}

function parseOne(candidate: unknown, baseUrl: string, at: number): Entry | BadBundle {
  const request = isRecord(candidate) ? candidate.request : undefined
  if (!isRecord(candidate) || !isRecord(request)) return bad('Cannot process entry: it has no request', at)
  const { method, url } = request
  if (typeof method !== 'string' || typeof url !== 'string')
    return bad('Cannot process entry: its request has no method or url', at)
  const interaction = parseEntry({ method, url, ifNoneExist: textOf(request.ifNoneExist) }, baseUrl)
  const patch = interaction.kind === 'patch' || interaction.kind === 'patch-conditional'
  return {
    fullUrl: textOf(candidate.fullUrl),
    interaction,
    // Patches are read one by one, when it is their turn.
    get body() {
      return patch ? patchIn(candidate.resource) : candidate.resource
    },
    preconditions: {
      ifMatch: textOf(request.ifMatch),
      ifNoneMatch: textOf(request.ifNoneMatch),
      ifModifiedSince: textOf(request.ifModifiedSince),
    },
  }
}

/** A JSON Patch comes in a Binary, a FHIRPath Patch as it is (R4 http.html#patch). What cannot be read fails as a patch. */
function patchIn(resource: unknown): unknown {
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
  return textOf(resource.data)
}

function countPatchCharacters(entry: readonly unknown[]): number {
  return entry.reduce<number>(
    (sum, it) => sum + (isRecord(it) ? (readJsonPatchData(it.resource)?.length ?? 0) : 0),
    0,
  )
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function createTooCostly(why: string): BadBundle {
  return fail({ problem: 'too-costly', text: `Cannot process Bundle: ${why}` })
}

function bad(text: string, entry?: number): BadBundle {
  return fail({ problem: 'bad-bundle', text, ...(entry !== undefined && { entry }) })
}

import { isFailure } from '../../../core/index.ts'
import { failFor, type HistoryQuery, limits, resourceTypes } from '../../../fhir/index.ts'
import type { Failure, FhirRequest, History, HistoryEntry, HistoryPage } from '../../../fhir-api/index.ts'
import type { AccessFilter } from '../../../smart/index.ts'
import { findWithin } from '../find-within.ts'
import { VERSIONS_CHECKED } from '../limits.ts'
import type { SqlValue } from '../repository/database.ts'
import type { Repository } from '../repository/repository.ts'
import { createSearchScope, type Steps } from '../search/planner/search-scope.ts'
import { findStoredTypes } from '../search/planner/stored-types.ts'
import { findVersionPatients, toEtag } from '../stored-version.ts'
import {
  type CheckedVersion,
  countVersions,
  findVersions,
  type HistoryContext,
  type HistoryScope,
  hasQuery,
  readVersions,
  type Version,
} from './versions.ts'

/** The page of a history that begins after a version. */
export function* findHistory(
  context: HistoryContext,
  request: FhirRequest<History>,
  query: HistoryQuery,
  after: readonly SqlValue[] | undefined,
): Steps<HistoryPage | Failure> {
  const scope = createScope(context, request)
  if (!scope) return { versions: [], total: 0, cursors: new Map() }
  const page = yield* readPage(context, scope, query, after)
  if (isFailure(page)) return page
  const { versions, next } = page
  return {
    versions: versions.map(version => toHistoryEntry(context.repository, version)),
    total: after === undefined && !next ? versions.length : yield* countVersions(context, scope, query),
    cursors: new Map(next && [['next', next]]),
  }
}

/** Undefined if the resource does not exist. */
function createScope(
  { repository }: HistoryContext,
  { interaction, access }: FhirRequest<History>,
): HistoryScope | undefined {
  switch (interaction.kind) {
    case 'history-instance': {
      const { type, id } = interaction
      // Its content is not needed, and its size must not show in the time.
      const current = findWithin(repository, type, id, [])
      return current && { ...createPart(type, access.filterFor(type, 'r'), true), rid: current.rid }
    }
    case 'history-type':
      return createPart(interaction.type, access.filterFor(interaction.type, 's'), false)
    case 'history-system': {
      const scope = createSearchScope(repository, access, 's')
      return {
        parts: findStoredTypes(scope, resourceTypes).map(type => ({ type, filter: scope.filter(type) })),
        // Of all types: the response must not reveal which types have resources outside the access.
        isDecidedByIndex: !resourceTypes.some(type => hasQuery(scope.filter(type))),
        isWhole: resourceTypes.every(type => scope.filter(type) === 'everything'),
      }
    }
  }
}

function createPart(type: string, filter: AccessFilter, isOfOne: boolean): HistoryScope {
  return {
    parts: [{ type, filter }],
    isDecidedByIndex: !hasQuery(filter),
    isWhole: isOfOne && filter === 'everything',
  }
}

interface VersionPage {
  readonly versions: readonly Version[]
  /** Where the next page begins, if there is one. */
  readonly next: readonly SqlValue[] | undefined
}

/** Reads as many versions as a page holds, and then more, until the page is full or no version is left. */
function* readPage(
  context: HistoryContext,
  scope: HistoryScope,
  query: HistoryQuery,
  after: readonly SqlValue[] | undefined,
): Steps<VersionPage | Failure> {
  if (scope.parts.length === 0 || query.count === 0) return { versions: [], next: undefined }
  const most = scope.isDecidedByIndex ? query.count : query.count + VERSIONS_CHECKED
  const page = createPage(query.count, most)
  let start = after
  let size = query.count + 1
  let listed = 0
  while (listed <= most) {
    const requested = Math.min(size, most + 1 - listed)
    const seqs = yield* findVersions(context, scope, query, start, requested)
    for (const checked of readVersions(context, scope, seqs)) {
      const end = page.add(checked)
      if (end) return end
    }
    if (seqs.length < requested) break
    listed += requested
    size *= 4
    start = seqs.slice(-1)
  }
  return { versions: page.versions, next: undefined }
}

/**
 * As many versions as were requested, or as fit into `PAGE_CHARACTERS`, the newest first. A page is never shorter because
 * versions outside the access were left out, which would reveal them: if there are too many of those, it fails.
 */
function createPage(count: number, most: number) {
  const versions: Version[] = []
  let shown = 0
  let leftOut = 0
  let last = 0
  let read = 0
  return {
    versions,
    /** Returns the page, or its failure, if this version belongs to the next page. */
    add({ version, seq, isVisible }: CheckedVersion): VersionPage | Failure | undefined {
      if (read++ === most) return versions.length < count ? TOO_MANY_LEFT_OUT : { versions, next: [last] }
      const size = version.content.length
      if (isVisible) shown += size
      else leftOut += size
      if (leftOut > limits.PAGE_CHARACTERS) return TOO_MANY_LEFT_OUT
      const isFull = versions.length === count || (shown > limits.PAGE_CHARACTERS && versions.length > 0)
      if (isVisible && isFull) return { versions, next: [last] }
      if (isVisible) versions.push(version)
      last = seq
      return undefined
    },
  }
}

const TOO_MANY_LEFT_OUT = failFor('versions-too-many', {
  most: VERSIONS_CHECKED,
  characters: limits.PAGE_CHARACTERS,
})

function toHistoryEntry({ database }: Repository, version: Version): HistoryEntry {
  const { type, id, method, isCreation, updated, content } = version
  const isDeletion = method === 'DELETE'
  return {
    type,
    id,
    method,
    etag: toEtag(version),
    lastModified: new Date(updated).toISOString(),
    text: isDeletion ? undefined : content,
    status: isDeletion ? '204 No Content' : isCreation ? '201 Created' : '200 OK',
    findPatients: () => findVersionPatients(database, version),
  }
}

import type { HistoryQuery } from '../../../fhir/index.ts'
import type { History, HistoryEntry, HistoryPage } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import type { SqlValue } from '../repository/database.ts'
import { findStoredTypes } from '../search/types-in.ts'
import { toEtag } from '../stored-version.ts'
import type { HistoryScope, Version } from './read-versions.ts'
import { countVersions, runHistory } from './run-history.ts'

/** The page of a history that begins after a version. */
export function findHistory(
  context: Context,
  call: Call<History>,
  query: HistoryQuery,
  after: readonly SqlValue[] | undefined,
): HistoryPage | Problem {
  const ground = createGround(context, call)
  if (!ground) return { versions: [], total: 0, cursors: new Map() }
  const page = runHistory(context, ground, query, after)
  if (isProblem(page)) return page
  const { versions, next } = page
  return {
    versions: versions.map(toEntry),
    total: after === undefined && !next ? versions.length : countVersions(context, ground, query),
    cursors: new Map(next && [['next', next]]),
  }
}

/** Undefined where there is no such resource. */
function createGround(
  { repository }: Context,
  { interaction, access }: Call<History>,
): HistoryScope | undefined {
  switch (interaction.kind) {
    case 'history-instance': {
      const { type, id } = interaction
      const current = repository.find(type, id)
      return current && { parts: [{ type, filter: access.filterFor(type, 'r') }], rid: current.rid }
    }
    case 'history-type':
      return { parts: [{ type: interaction.type, filter: access.filterFor(interaction.type, 's') }] }
    case 'history-system':
      return {
        parts: findStoredTypes(repository).map(type => ({ type, filter: access.filterFor(type, 's') })),
      }
  }
}

function toEntry(version: Version): HistoryEntry {
  const { type, id, method, isCreation, updated, content } = version
  const isDeletion = method === 'DELETE'
  return {
    ...{ type, id, method, etag: toEtag(version), lastModified: new Date(updated).toISOString() },
    text: isDeletion ? undefined : content,
    status: isDeletion ? '204 No Content' : isCreation ? '201 Created' : '200 OK',
  }
}

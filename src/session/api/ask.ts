import type { Static, TObject, TSchema } from '@sinclair/typebox'
import { fail, type Result } from '../failure.ts'
import type { Visit } from '../records/visit.ts'
import { readQuery } from './query.ts'
import type { ApiRow } from './row.ts'
import { findMissingScopes } from './scopes.ts'

/** Answers a row for a session: scopes first, then parameters, then records. The routes and the demo app both ask here. */
export async function askApi<Query extends TObject, Body extends TSchema>(
  row: ApiRow<Query, Body>,
  visit: Visit,
  sent: Readonly<Record<string, unknown>> = {},
): Promise<Result<Static<Body>>> {
  const missing = findMissingScopes(row.scopes, visit.session.scope)
  if (missing.length > 0) return fail({ kind: 'missing-scope', missing })
  const query = readQuery(row.query, sent)
  return query.ok ? row.answer(visit, query.value) : query
}

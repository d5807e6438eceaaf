import {
  contentIn,
  exactText,
  fail,
  isProblem,
  isUnchanged,
  isWhole,
  type Params,
  parseExact,
  type Resource,
  shapedResource,
  shapeOf,
} from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler, InteractionOf } from '../call.ts'
import { findConveyed } from '../judge/documents.ts'
import { currentVersion, type Deleted, hiddenNow, type Living, look, told } from '../judge/find.ts'
import { seesAll } from '../judge/sees-all.ts'
import type { Problem } from '../problem.ts'
import { passThrough } from '../upstream/pass-through.ts'
import { headersFor, pathOf, queryOf } from '../upstream/request-of.ts'

type Read = InteractionOf<'read' | 'vread'>

/** Judged on what came back: the address tells nothing about whose it is. */
export const read: Handler<'read'> = async (context, call) => {
  const { type, id, params } = call.interaction
  if (isPassed(call)) return readAll(context, call)
  const seen = await look(context, call, 'r', type, id)
  const isUnseen = !isProblem(seen) && (seen.kind === 'absent' || seen.kind === 'outside')
  const conveyed = isUnseen && isLimitedBinary(call) ? await findConveyed(context, call, id) : undefined
  return shown(conveyed ?? told(seen, call, 'r', type, id), type, id, params, call)
}

/** Whether a Binary may be one that can be read through a DocumentReference. */
function isLimitedBinary({ interaction, access }: Call<Read>): boolean {
  const filter = access.filterFor('Binary', 'r')
  return interaction.type === 'Binary' && filter !== 'everything' && filter.length > 0
}

/**
 * The resource may have been another patient's at that version, and may be another patient's now: both must be within
 * reach, unless the settings say that the version alone decides.
 */
export const vread: Handler<'vread'> = async (context, call) => {
  const { type, id, version, params } = call.interaction
  if (isPassed(call)) return readAll(context, call)
  const hidden = await hiddenNow(context, call, type, id)
  if (hidden) return hidden
  const found = told(await look(context, call, 'r', type, id, version), call, 'r', type, id)
  return shown(found, type, id, params, call)
}

/** Whether the answer passes by unseen. The content of a Binary is taken out of it. */
function isPassed({ access, preferences }: Call): boolean {
  return seesAll(access) && !preferences.content
}

function readAll(context: Context, call: Call<Read>): Promise<Answer | Problem> {
  const { ifNoneMatch, ifModifiedSince } = call.preconditions
  const params = call.interaction.params.filter(([name]) => name !== '_format' && name !== '_pretty')
  const query = queryOf(params, context.addresses)
  return passThrough(context, call, {
    method: 'GET',
    path: query === '' ? pathOf(call.interaction) : `${pathOf(call.interaction)}?${query}`,
    headers: {
      ...headersFor(call),
      ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
      ...(ifModifiedSince !== undefined && { 'if-modified-since': ifModifiedSince }),
    },
  })
}

/** What was left out upstream could not be judged, so it is left out here. */
function shown(
  found: Living | Deleted | Problem,
  type: string,
  id: string,
  params: Params,
  { preconditions, preferences }: Call,
): Answer | Problem {
  if (isProblem(found)) return found
  if (found.kind === 'deleted') return fail({ problem: 'gone', type, id })
  const headers = versionHeaders(found)
  if (isUnchanged(currentVersion(found), preconditions)) return { status: 304, headers }
  const shape = shapeOf(params)
  if (preferences.content) return { status: 200, headers, body: found.text, content: contentIn(found.text) }
  if (isWhole(shape)) return { status: 200, headers, body: found.text }
  const body = exactText(shapedResource(parseExact(found.text) as Resource, shape))
  return { status: 200, headers, body }
}

export function versionHeaders({
  etag,
  lastModified,
}: Pick<Living, 'etag' | 'lastModified'>): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  if (etag !== undefined) headers.etag = etag
  if (lastModified !== undefined) headers['last-modified'] = lastModified
  return headers
}

import { fail, findShape, isUnchanged, type Params, readContent, shapeResponse } from '../../fhir/index.ts'
import { findThroughDocument, isLimitedBinary } from '../access/binaries.ts'
import { findHidden, findResource, lookUp, toCurrentVersion, toVisible } from '../access/find-resource.ts'
import type { Handler } from '../context.ts'
import { type Failure, isFailure } from '../failure.ts'
import type { FhirRequest } from '../request.ts'
import type { FhirResponse } from '../response.ts'
import type { StoredVersion } from '../stored-version.ts'

/** Checks the content: the URL does not say whose resource it is. */
export const read: Handler<'read'> = async (context, request) => {
  const { type, id, params } = request.interaction
  const passing = context.session.passThrough?.(request)
  const passed = passing && (await passing)
  if (passed) return passed
  const found = await lookUp(context, request, 'r', type, id)
  const granted =
    typeof found === 'string' && isLimitedBinary(request)
      ? await findThroughDocument(context, request, id)
      : undefined
  return show(granted ?? toVisible(found, request, 'r', type, id), params, request)
}

/**
 * The version may be another patient's, and the current version too: both must be within the access, unless the settings
 * let the version alone decide.
 */
export const vread: Handler<'vread'> = async (context, request) => {
  const { type, id, version, params } = request.interaction
  const passing = context.session.passThrough?.(request)
  const passed = passing && (await passing)
  if (passed) return passed
  const hidden = await findHidden(context, request, type, id)
  if (hidden) return hidden
  return show(await findResource(context, request, 'r', type, id, version), params, request)
}

function show(
  found: StoredVersion | Failure,
  params: Params,
  { preconditions, preferences }: FhirRequest,
): FhirResponse | Failure {
  if (isFailure(found)) return found
  const { type, id, text } = found
  if (found.deleted || text === undefined) return fail({ problem: 'gone', type, id })
  const version = { etag: found.etag, lastModified: found.lastModified }
  if (isUnchanged(toCurrentVersion(found), preconditions)) return { status: 304, version }
  if (preferences.content) return { status: 200, version, body: text, content: readContent(text) }
  const body = params.length === 0 ? text : shapeResponse(text, findShape(params))
  return { status: 200, version, body, contents: [{ type, id, text, parse: () => found.parse() }] }
}

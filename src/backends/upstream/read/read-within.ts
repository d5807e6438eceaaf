import { isFailure } from '../../../core/index.ts'
import { failFor, type Resource } from '../../../fhir/index.ts'
import type { Failure, FhirRequest, StoredVersion } from '../../../fhir-api/index.ts'
import type { AccessFilter } from '../../../smart/index.ts'
import { LATE } from '../concealment.ts'
import type { GatewayContext } from '../context.ts'
import { readLast, readVersion } from './read-version.ts'

/** Reads a resource, or one version of it. No search finds an older version, nor a Binary by its patient. */
export function read(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  id: string,
  version?: string,
  filter: AccessFilter = 'everything',
): Promise<StoredVersion | undefined | Failure> {
  return filter === 'everything' || version !== undefined || type === 'Binary'
    ? readVersion(context, request, type, id, version)
    : readWithin(context, request, type, id, filter)
}

/** The content of a resource before it was deleted, unless that takes too long to find out whether it is within a filter. */
export async function readLastWithin(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  id: string,
  filter: AccessFilter = 'everything',
): Promise<Resource | Failure | undefined> {
  const reading = readLast(context, request, type, id)
  if (filter === 'everything') return reading
  const last = await context.concealment.limit(reading)
  return last === LATE ? undefined : last
}

/**
 * Reads a resource for a caller who is shown it only if it is within a filter. While the read takes long, the upstream is
 * asked whether a search within the filter finds the resource. If it does not, the read ends: the time until then does not
 * depend on the content (docs/decisions/0132-side-channels.md).
 */
async function readWithin(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  id: string,
  filter: AccessFilter,
): Promise<StoredVersion | undefined | Failure> {
  const { concealment } = context
  const isOutside = async () => (await context.findsWithin(context, request, type, id, filter)) === false
  if (concealment.asksFirst)
    return (await isOutside()) ? createOutside(type, id) : readVersion(context, request, type, id)
  const ending = new AbortController()
  const reading = readVersion(context, request, type, id, undefined, ending.signal)
  const early = await concealment.limit(reading)
  if (early !== LATE) return early
  if (!(await isOutside())) return reading
  // No search finds a deleted resource, which has no content.
  const ended = await Promise.race([reading, undefined])
  if (ended && !isFailure(ended) && ended.deleted) return ended
  ending.abort()
  return createOutside(type, id)
}

/** A resource that is absent, or outside the filter. */
function createOutside(type: string, id: string): StoredVersion {
  return {
    type,
    id,
    deleted: false,
    isTrusted: false,
    order: Number.NaN,
    etag: undefined,
    lastModified: undefined,
    text: undefined,
    parse: () => failFor('outside-access'),
  }
}

import { isFailure } from '../../core/index.ts'
import { failFor, findNamedBinaries, limits, type Resource } from '../../fhir/index.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import type { Failure } from '../response.ts'
import type { StoredVersion } from '../stored-version.ts'
import { checkStored, lookUp } from './find-resource.ts'

/** Whether a request is about a Binary that the caller may be able to read through a DocumentReference. */
export function isLimitedBinary({ interaction, access }: FhirRequest): boolean {
  if (!('type' in interaction) || interaction.type !== 'Binary') return false
  const filter = access.filterFor('Binary', 'r')
  return filter !== 'everything' && filter.length > 0
}

/**
 * A Binary without security context that the caller may read through a DocumentReference written after it. The documents
 * are looked up first, so that a caller who has none cannot find out whether the Binary exists.
 */
export async function findThroughDocument(
  context: Context,
  request: FhirRequest,
  id: string,
): Promise<StoredVersion | undefined> {
  const { session } = context
  const documents = await session.findDocuments(id)
  if (documents.length === 0) return undefined
  const binary = await session.read('Binary', id)
  if (!binary || isFailure(binary) || binary.deleted) return undefined
  const content = binary.parse()
  if (isFailure(content) || content.securityContext !== undefined) return undefined
  const resources = documents.map(it => it.parse())
  const check = await checkStored(context, request, [...resources, { resourceType: 'Binary' }])
  if (isFailure(check)) return undefined
  const isGranted = documents.some(
    ({ order }, at) => order >= binary.order && resources[at] && check.grantsBinary(resources[at], id),
  )
  return isGranted ? binary : undefined
}

/**
 * Fails for a DocumentReference that names a Binary which the caller may neither read nor write: it would let its readers,
 * including the caller, read that Binary. An absent Binary is refused in the same way.
 */
export async function checkNamedBinaries(
  context: Context,
  request: FhirRequest,
  resource: Resource,
  identities: ReadonlySet<string>,
): Promise<Failure | undefined> {
  if (request.access.filterFor('Binary', 'r') === 'everything') return undefined
  const named = findNamedBinaries(resource, context.baseUrl)
  if (named.size > limits.BINARIES_OF_DOCUMENT)
    return failFor('binaries-too-many', { most: limits.BINARIES_OF_DOCUMENT })
  for (const id of named)
    if (!identities.has(`Binary/${id}`) && !(await mayTouchBinary(context, request, id))) {
      context.session.noteUnseen?.('Binary')
      return failFor('outside-access')
    }
  return undefined
}

/** A caller who may write a Binary can know its content without reading it. */
async function mayTouchBinary(context: Context, request: FhirRequest, id: string): Promise<boolean> {
  for (const permission of ['r', 'c', 'u'] as const) {
    if (request.access.filterFor('Binary', permission).length === 0) continue
    const found = await lookUp(context, request, { permission, type: 'Binary', id })
    if (typeof found === 'object' && !isFailure(found) && !found.deleted) return true
  }
  return (await findThroughDocument(context, request, id)) !== undefined
}

import type { Context } from '../context.ts'
import { isFailure } from '../failure.ts'
import type { FhirRequest } from '../request.ts'
import type { StoredVersion } from '../stored-version.ts'
import { checkStored } from './find-resource.ts'

/** Whether a Binary may be one that can be read through a DocumentReference. */
export function isLimitedBinary({ interaction, access }: FhirRequest): boolean {
  if (!('type' in interaction) || interaction.type !== 'Binary') return false
  const filter = access.filterFor('Binary', 'r')
  return filter !== 'everything' && filter.length > 0
}

/**
 * The Binary if it does not say whose it is and may be read through a DocumentReference that was written after it. The
 * documents are looked up first: to a caller who has none it makes no difference whether the Binary exists.
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

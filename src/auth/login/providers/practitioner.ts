import type { Resource } from '../../../fhir/index.ts'
import type { AuthContext } from '../../context.ts'
import { createUserLookup, isResource } from '../../portal/fhir-reader.ts'
import type { PractitionerQuery } from './identity.ts'
import { SignInRefusal } from './refusal.ts'

/** Finds the one Practitioner on the FHIR server, and returns its id. */
export async function findPractitioner(
  context: Pick<AuthContext, 'settings' | 'keys' | 'clock' | 'fetch'>,
  query: PractitionerQuery,
): Promise<string | SignInRefusal> {
  const read = await createUserLookup(context, 'Practitioner')
  const path = query.kind === 'id' ? `Practitioner/${query.id}` : `${query.query}&_count=2`
  const result = await read(path)
  if (result.kind === 'unavailable') return new SignInRefusal('fhir-unavailable', result.reason)
  if (result.kind === 'absent') return new SignInRefusal('no-practitioner')
  const [first, second] = listPractitioners(result.resource)
  if (first === undefined) return new SignInRefusal('no-practitioner')
  return second === undefined ? first : new SignInRefusal('several-practitioners')
}

/** The ids of the Practitioners: the resource itself, or the matches of a search. */
function listPractitioners(resource: Resource): readonly string[] {
  const { entry } = resource
  const resources = Array.isArray(entry)
    ? entry.map((one: unknown) =>
        typeof one === 'object' && one !== null && 'resource' in one ? one.resource : one,
      )
    : [resource]
  return resources
    .filter(isResource)
    .flatMap(({ resourceType, id }) =>
      resourceType === 'Practitioner' && typeof id === 'string' ? [id] : [],
    )
}

import { failFor, isResourceType, resourceTypes } from '../../../fhir/index.ts'
import type { Failure, FhirRequest, Search } from '../../../fhir-api/index.ts'
import type { Access } from '../../../smart/index.ts'
import { hasAccess } from '../read/access.ts'

/** A search request that may be one of the gateway's own. */
export interface SearchRequest extends FhirRequest<Search> {
  /** Something is decided by the result: every parameter is evaluated here, and none may be ignored. */
  readonly isStrict?: true
  /** The parameter that finds the resources of the caller's patients, where it is not the usual one of the type. */
  readonly memberBy?: string
}

export function findOneType(interaction: Search): string | undefined {
  return interaction.kind === 'search-system' || interaction.type === '*' ? undefined : interaction.type
}

/** The types of a search: that of the URL, those of `_type`, or all that the caller may search. */
export function findTypes(interaction: Search, access: Access): readonly string[] | Failure {
  const type = findOneType(interaction)
  if (type !== undefined) return [type]
  const named = interaction.params
    .filter(([name]) => name === '_type')
    .flatMap(([, value]) => value.split(','))
  if (!named.every(isResourceType)) return failFor('types-malformed')
  return named.length > 0 ? [...new Set(named)] : resourceTypes.filter(it => hasAccess(access, it, 's'))
}

import { Type } from 'typebox'
import { isFailure, isRecord } from '../../core/index.ts'
import { CLOSED } from '../../endpoint/index.ts'
import { isResourceType, listSearchParameters, type Permission } from '../../fhir/index.ts'
import { listResourceScopes } from '../grants.ts'
import { listRecords } from '../rows.ts'
import { defineTool, type FhirJson, failCall } from '../tool.ts'

const INTERACTIONS: readonly (readonly [Permission, string])[] = [
  ['r', 'read'],
  ['s', 'search'],
  ['c', 'create'],
  ['u', 'update'],
  ['d', 'delete'],
]

/** An example for each type of search parameter. */
const EXAMPLES: Readonly<Record<string, string>> = {
  date: 'ge2025-01-01',
  token: 'http://loinc.org|4548-4',
  string: 'juniper',
  reference: 'Encounter/1',
  quantity: 'gt7|http://unitsofmeasure.org|%',
  number: 'gt5',
  uri: 'http://example.org/1',
  composite: '4548-4$gt7',
}

/** Examples that say more than that of the type. */
const OWN_EXAMPLES: Readonly<Record<string, string>> = {
  'Observation.category': 'laboratory',
  'Condition.category': 'problem-list-item',
  'Condition.clinical-status': 'active',
  'AllergyIntolerance.clinical-status': 'active',
  'MedicationRequest.status': 'active',
  'Encounter.status': 'finished',
  'Encounter.class': 'AMB',
  'DocumentReference.type': 'http://loinc.org|11506-3',
}

export const describeType = defineTool({
  name: 'describe_type',
  title: 'Describe a type',
  description: 'Lists the search parameters of a resource type, with examples, and what you may do with it.',
  input: Type.Object({ type: Type.String({ description: 'FHIR R4 resource type' }) }, CLOSED),
  output: Type.Object(
    {
      type: Type.String(),
      permissions: Type.Array(Type.String()),
      filters: Type.Optional(Type.Array(Type.String())),
      parameters: Type.Array(
        Type.Object({ name: Type.String(), type: Type.String(), example: Type.String() }, CLOSED),
      ),
    },
    CLOSED,
  ),
  isUsableBy: () => true,
  async call({ grant, fetch }, { type }) {
    if (!isResourceType(type)) return failCall(`${JSON.stringify(type)} is not a FHIR R4 resource type.`)
    const statement = await fetch('/metadata')
    if (isFailure(statement)) return statement
    const scopes = listResourceScopes(grant).filter(scope => scope.type === '*' || scope.type === type)
    const permissions = INTERACTIONS.filter(([permission]) =>
      scopes.some(it => it.permissions.has(permission)),
    )
    const filters = scopes.filter(({ query }) => query.length > 0).map(({ text }) => text)
    const known = new Map(listSearchParameters(type).map(it => [it.code, it.type]))
    const parameters = listOffered(statement, type)
      .filter(({ name }) => known.has(name))
      .map(({ name, kind }) => ({
        name,
        type: kind,
        example: `${name}=${OWN_EXAMPLES[`${type}.${name}`] ?? EXAMPLES[kind] ?? '…'}`,
      }))
    const content = {
      type,
      permissions: permissions.map(([, name]) => name),
      ...(filters.length > 0 && { filters }),
      parameters,
    }
    const may = content.permissions.length === 0 ? 'nothing' : content.permissions.join(', ')
    const text = [
      `${type}: you may ${may}.${filters.length > 0 ? ` Only within ${filters.join(' or ')}.` : ''}`,
      ...parameters.map(it => `${it.name} (${it.type}): ${it.example}`),
    ]
    return { content, text: text.join('\n') }
  },
})

/** The search parameters of a type that the server offers. */
function listOffered(
  statement: FhirJson,
  type: string,
): readonly { readonly name: string; readonly kind: string }[] {
  const [rest] = listRecords(statement.rest)
  const resource = listRecords(rest?.resource).find(it => it.type === type)
  return listRecords(isRecord(resource) ? resource.searchParam : undefined).flatMap(({ name, type: kind }) =>
    typeof name === 'string' && typeof kind === 'string' ? [{ name, kind }] : [],
  )
}

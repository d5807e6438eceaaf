import { Type } from 'typebox'
import { isFailure } from '../../core/index.ts'
import { Members } from '../../endpoint/index.ts'
import { isResourceType, type Permission } from '../../fhir/index.ts'
import { listResourceScopes } from '../grants.ts'
import { listOffered } from '../parameters.ts'
import { defineTool, failCall } from '../tool.ts'

const INTERACTIONS: readonly (readonly [Permission, string])[] = [
  ['r', 'read'],
  ['s', 'search'],
  ['c', 'create'],
  ['u', 'update'],
  ['d', 'delete'],
]

export const describeType = defineTool({
  name: 'describe_type',
  title: 'Describe a type',
  description: 'Lists the search parameters of a resource type, with examples, and what you may do with it.',
  input: Members({ type: Type.String({ description: 'FHIR R4 resource type' }) }),
  output: Members({
    type: Type.String(),
    permissions: Type.Array(Type.String()),
    filters: Type.Optional(Type.Array(Type.String())),
    parameters: Type.Array(Members({ name: Type.String(), type: Type.String(), example: Type.String() })),
  }),
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
    const parameters = listOffered(statement, type)
    const content = {
      type,
      permissions: permissions.map(([, name]) => name),
      ...(filters.length > 0 && { filters }),
      parameters: [...parameters],
    }
    const may = content.permissions.length === 0 ? 'nothing' : content.permissions.join(', ')
    const text = [
      `${type}: you may ${may}.${filters.length > 0 ? ` Only within ${filters.join(' or ')}.` : ''}`,
      ...parameters.map(it => `${it.name} (${it.type}): ${it.example}`),
    ]
    return { content, text: text.join('\n') }
  },
})

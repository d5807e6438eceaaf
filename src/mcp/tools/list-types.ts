import { Type } from 'typebox'
import { isFailure, isRecord } from '../../core/index.ts'
import { Members } from '../../endpoint/index.ts'
import { listCompartmentParameters, resourceTypes } from '../../fhir/index.ts'
import { listResourceScopes, mayUse } from '../grants.ts'
import { listRecords } from '../rows.ts'
import { defineTool } from '../tool.ts'

/** The types of a patient's record. */
const TYPES_OF_RECORD = resourceTypes.filter(type => listCompartmentParameters(type).length > 0)

export const listTypes = defineTool({
  name: 'list_types',
  title: 'List the kinds of data',
  description: 'Lists the resource types that the record has and you may search, with their numbers.',
  input: Members({}),
  output: Members({ types: Type.Array(Members({ type: Type.String(), count: Type.Integer() })) }),
  isUsableBy: grant => mayUse(grant, 's') || mayUse(grant, 'r'),
  async call({ grant, fetch }) {
    const scopes = listResourceScopes(grant)
    const searched = TYPES_OF_RECORD.filter(type =>
      scopes.some(scope => scope.type === '*' || scope.type === type),
    )
    const bundle = await fetch('', {
      resourceType: 'Bundle',
      type: 'batch',
      entry: searched.map(type => ({ request: { method: 'GET', url: `${type}?_summary=count` } })),
    })
    if (isFailure(bundle)) return bundle
    const types = listRecords(bundle.entry).flatMap(({ resource }, index) => {
      const count = isRecord(resource) ? resource.total : undefined
      return typeof count === 'number' && count > 0 ? [{ type: searched[index] ?? '', count }] : []
    })
    const text = types.map(({ type, count }) => `${type}: ${count}`).join('\n')
    return { content: { types }, text: text || 'The record has no data that you may search.' }
  },
})

import { Type } from 'typebox'
import { isFailure } from '../../core/index.ts'
import { Members } from '../../endpoint/index.ts'
import { parseReference } from '../../fhir/index.ts'
import { condense, condenseElement } from '../condense.ts'
import { mayUse } from '../grants.ts'
import { defineTool, failCall } from '../tool.ts'

export const read = defineTool({
  name: 'read',
  title: 'Read a resource',
  description: 'Returns one resource as FHIR JSON, without its narrative.',
  input: Members({
    reference: Type.String({ description: 'Such as Observation/123' }),
    element: Type.Optional(
      Type.String({ description: 'Only one element, such as component or content[3].attachment' }),
    ),
    from: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Its first item or character, as a note says' }),
    ),
    version: Type.Optional(Type.String({ description: 'An earlier version (meta.versionId)' })),
  }),
  output: Members({
    resource: Type.Record(Type.String(), Type.Unknown()),
    notes: Type.Optional(Type.Array(Type.String())),
  }),
  isUsableBy: grant => mayUse(grant, 'r'),
  async call({ baseUrl, fetch }, { reference, version, element, from = 0 }) {
    const found = parseReference(reference, baseUrl)
    if (!found) return failCall('Send a reference of this server, such as Observation/123.')
    const at = version === undefined ? '' : `/_history/${encodeURIComponent(version)}`
    const resource = await fetch(`/${found.type}/${found.id}${at}`)
    if (isFailure(resource)) return resource
    const shown = element === undefined ? condense(resource) : condenseElement(resource, element, from)
    if (isFailure(shown)) return shown
    const { resource: condensed, notes } = shown
    const text = [JSON.stringify(condensed), ...notes].join('\n')
    return { content: { resource: condensed, ...(notes.length > 0 && { notes }) }, text }
  },
})

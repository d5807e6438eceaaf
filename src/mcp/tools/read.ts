import { Type } from 'typebox'
import { isFailure } from '../../core/index.ts'
import { CLOSED } from '../../endpoint/index.ts'
import { parseReference } from '../../fhir/index.ts'
import { condense } from '../condense.ts'
import { mayUse } from '../grants.ts'
import { defineTool, failCall } from '../tool.ts'

export const read = defineTool({
  name: 'read',
  title: 'Read a resource',
  description: 'Returns one resource as FHIR JSON, without its narrative.',
  input: Type.Object(
    {
      reference: Type.String({ description: 'Such as Observation/123' }),
      version: Type.Optional(Type.String({ description: 'An earlier version (meta.versionId)' })),
    },
    CLOSED,
  ),
  output: Type.Object(
    { resource: Type.Record(Type.String(), Type.Unknown()), notes: Type.Optional(Type.Array(Type.String())) },
    CLOSED,
  ),
  isUsableBy: grant => mayUse(grant, 'r'),
  async call({ baseUrl, fetch }, { reference, version }) {
    const found = parseReference(reference, baseUrl)
    if (!found) return failCall('Send a reference of this server, such as Observation/123.')
    const at = version === undefined ? '' : `/_history/${encodeURIComponent(version)}`
    const resource = await fetch(`/${found.type}/${found.id}${at}`)
    if (isFailure(resource)) return resource
    const { resource: condensed, notes } = condense(resource)
    const text = [JSON.stringify(condensed), ...notes].join('\n')
    return { content: { resource: condensed, ...(notes.length > 0 && { notes }) }, text }
  },
})

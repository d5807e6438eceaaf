import {
  type Interaction,
  isResource,
  namesOtherPatient,
  type Resource,
  referredPatients,
} from '../../fhir/index.ts'
import { type Access, isWritable } from '../../smart/index.ts'
import type { Refusal } from '../refusal.ts'
import { patchedParts } from './patched-parts.ts'

/** Why the content of a write is refused whatever is stored, as far as the request alone tells. */
export function contentRefusal(
  interaction: Interaction,
  body: unknown,
  access: Access,
  baseUrl: string,
): Refusal | undefined {
  switch (interaction.kind) {
    case 'create':
      return writtenRefusal(
        body,
        interaction.type,
        undefined,
        access.filterFor(interaction.type, 'c'),
        baseUrl,
      )
    case 'update':
      return writtenRefusal(
        body,
        interaction.type,
        interaction.id,
        access.filterFor(interaction.type, 'u'),
        baseUrl,
      )
    case 'update-conditional':
      return writtenRefusal(
        body,
        interaction.type,
        undefined,
        access.filterFor(interaction.type, 'u'),
        baseUrl,
      )
    case 'patch':
    case 'patch-conditional':
      return patchRefusal(body, interaction.type, access.filterFor(interaction.type, 'u'), baseUrl)
    default:
      return undefined
  }
}

type Reach = ReturnType<Access['filterFor']>

const OUTSIDE: Refusal = { kind: 'not-within', hint: 'The content of the write is not within the grant' }

function writtenRefusal(
  body: unknown,
  type: string,
  id: string | undefined,
  filter: Reach,
  baseUrl: string,
): Refusal | undefined {
  if (!isResource(body)) return misread('Cannot read body: it is no resource')
  if (body.resourceType !== type) return misread('Cannot write: the body is of another type than the address')
  if (id !== undefined && body.id !== id)
    return misread('Cannot write: the body has another id than the address')
  return isWritable(body, filter, baseUrl) ? undefined : OUTSIDE
}

/** A patch is judged on its result, by the server; what it says of other patients is refused before. */
function patchRefusal(body: unknown, type: string, filter: Reach, baseUrl: string): Refusal | undefined {
  const patched = patchedParts(body, type)
  if (!patched) return misread('Cannot read body: it is no JSON Patch or FHIRPath Patch')
  if (filter === 'everything') return undefined
  const parts: Resource = { ...patched, resourceType: type }
  const referred = [...referredPatients(parts, baseUrl)]
  const allows = filter.some(
    ({ patient, exclusive }) =>
      !exclusive ||
      patient === undefined ||
      (!namesOtherPatient(parts, patient, baseUrl) && referred.every(id => id === patient)),
  )
  return allows ? undefined : OUTSIDE
}

function misread(text: string): Refusal {
  return { kind: 'misunderstood', status: 400, text }
}

import {
  findReferredPatients,
  type Interaction,
  isResource,
  namesOtherPatient,
  type Resource,
} from '../../fhir/index.ts'
import { type Access, isWritable } from '../../smart/index.ts'
import type { Refusal } from '../refusal.ts'
import { collectPatchedParts } from './patched-parts.ts'

/** Checks the content of a write, as far as that is possible without stored data. */
export function checkContent(
  interaction: Interaction,
  body: unknown,
  access: Access,
  baseUrl: string,
): Refusal | undefined {
  switch (interaction.kind) {
    case 'create':
      return checkWrittenResource(
        body,
        interaction.type,
        undefined,
        access.filterFor(interaction.type, 'c'),
        baseUrl,
      )
    case 'update':
      return checkWrittenResource(
        body,
        interaction.type,
        interaction.id,
        access.filterFor(interaction.type, 'u'),
        baseUrl,
      )
    case 'update-conditional':
      return checkWrittenResource(
        body,
        interaction.type,
        undefined,
        access.filterFor(interaction.type, 'u'),
        baseUrl,
      )
    case 'patch':
    case 'patch-conditional':
      return checkPatch(body, interaction.type, access.filterFor(interaction.type, 'u'), baseUrl)
    default:
      return undefined
  }
}

type Filter = ReturnType<Access['filterFor']>

const OUTSIDE: Refusal = { kind: 'not-within', hint: 'The content of the write is not within the grant' }

function checkWrittenResource(
  body: unknown,
  type: string,
  id: string | undefined,
  filter: Filter,
  baseUrl: string,
): Refusal | undefined {
  if (!isResource(body)) return refuseUnreadable('Cannot read body: it is not a resource')
  if (body.resourceType !== type)
    return refuseUnreadable('Cannot write: the resource type of the body differs from the URL')
  if (id !== undefined && body.id !== id)
    return refuseUnreadable('Cannot write: the id of the body differs from the URL')
  return isWritable(body, filter, baseUrl) ? undefined : OUTSIDE
}

/** The server checks the result of a patch. A patch that mentions another patient is refused before. */
function checkPatch(body: unknown, type: string, filter: Filter, baseUrl: string): Refusal | undefined {
  const patched = collectPatchedParts(body, type)
  if (!patched) return refuseUnreadable('Cannot read body: it is neither a JSON Patch nor a FHIRPath Patch')
  if (filter === 'everything') return undefined
  const parts: Resource = { ...patched, resourceType: type }
  const referred = [...findReferredPatients(parts, baseUrl)]
  const allows = filter.some(
    ({ patient, exclusive }) =>
      !exclusive ||
      patient === undefined ||
      (!namesOtherPatient(parts, patient, baseUrl) && referred.every(id => id === patient)),
  )
  return allows ? undefined : OUTSIDE
}

function refuseUnreadable(text: string): Refusal {
  return { kind: 'misunderstood', status: 400, text }
}

import { isRecord, toRecord } from '../../../core/index.ts'
import type { ExactResource } from '../../../fhir/index.ts'
import type { Proposal } from '../../../proposals/index.ts'

/** HL7 AI Transparency on FHIR: content that a machine has written. */
const AI_ASSERTED = {
  system: 'http://terminology.hl7.org/CodeSystem/v3-ObservationValue',
  code: 'AIAST',
  display: 'Artificial Intelligence asserted',
}

/** Marks what was written for a proposal, so that the server finds it, and writes it once. */
export function makeTag({ issuerUrl }: TagSettings, { id }: Pick<Proposal, 'id'>) {
  return { system: `${issuerUrl}/proposals`, code: id }
}

interface TagSettings {
  readonly issuerUrl: string
}

/** Only this server marks content: an assistant could else give the mark of a proposal to another resource, and prevent it. */
export function removeForeignMarks(
  resource: ExactResource,
  before: ExactResource | undefined,
  settings: TagSettings,
): ExactResource {
  const { system } = makeTag(settings, { id: '' })
  const own = new Set(before && listTags(before).map(({ code }) => code))
  const tags = listTags(resource)
  const kept = tags.filter(tag => tag.system !== system || own.has(tag.code))
  if (kept.length === tags.length) return resource
  const { tag: _, ...meta } = toRecord(resource.meta)
  return { ...resource, meta: { ...meta, ...(kept.length > 0 && { tag: kept }) } } as ExactResource
}

function listTags({ meta }: ExactResource) {
  return isRecord(meta) && Array.isArray(meta.tag) ? meta.tag.filter(isRecord) : []
}

export function addMarks(resource: ExactResource, tag: object): object {
  const meta = toRecord(resource.meta)
  const others = (list: unknown) => (Array.isArray(list) ? list.filter(isRecord) : [])
  const security = others(meta.security).filter(({ code }) => code !== AI_ASSERTED.code)
  return {
    ...resource,
    meta: { ...meta, security: [...security, AI_ASSERTED], tag: [...others(meta.tag), tag] },
  }
}

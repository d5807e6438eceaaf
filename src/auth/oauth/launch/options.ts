import { type Failed, fail, isFailure, isPlainLine, isRecord } from '../../../core/index.ts'
import { isId, isResourceType, parseLimited } from '../../../fhir/index.ts'
import { type Fault, makeFault } from '../../base/fault.ts'
import { LIMITS } from '../../base/limits.ts'
import type { Parameters } from '../../base/request.ts'

/** "More options" of the launch form. */
export interface LaunchFormOptions {
  /** Undefined: the setting decides. */
  readonly needPatientBanner: boolean | undefined
  readonly extraContext: ExtraContext
}

export type OptionField = 'needPatientBanner' | 'intent' | 'tenant' | 'fhirContext'

/** The fault of a launch form, and its field. */
export type FormFault = OptionFault | typeof NO_CHOICE

interface OptionFault extends Failed {
  readonly reason: 'launch-option-invalid'
  readonly field: OptionField
  readonly fault: Fault
  readonly text: string
}

export const NO_CHOICE = fail({
  reason: 'launch-encounter-missing',
  field: 'encounterId',
  text: 'Choose an encounter, or “No encounter”.',
})

function makeOptionFault(field: OptionField, fault: Fault): OptionFault {
  return fail({ reason: 'launch-option-invalid', field, fault, text: `${fault.text}.` })
}

/** The encounter of a form. Empty for "No encounter", which is not the same as no choice. */
export function readEncounterChoice(body: unknown): string | undefined {
  return isRecord(body) && typeof body.encounterId === 'string' ? body.encounterId : undefined
}

/** Reads the options of a form, or returns the fault. */
export function readOptions(form: Parameters): LaunchFormOptions | OptionFault {
  const banner = form.get('needPatientBanner')
  if (banner !== undefined && banner !== 'true' && banner !== 'false')
    return makeOptionFault('needPatientBanner', makeFault('banner-malformed'))
  const intent = form.get('intent')?.trim() || undefined
  const tenant = form.get('tenant')?.trim() || undefined
  if (intent !== undefined && !isShortText(intent)) return makeOptionFault('intent', failLength('intent'))
  if (tenant !== undefined && !isShortText(tenant)) return makeOptionFault('tenant', failLength('tenant'))
  const fhirContext = readFhirContext(readItems(form.get('fhirContext') ?? ''))
  if (isFailure(fhirContext)) return makeOptionFault('fhirContext', fhirContext)
  return {
    needPatientBanner: banner === undefined ? undefined : banner === 'true',
    extraContext: makeExtraContext(intent, tenant, fhirContext),
  }
}

function failLength(name: OptionField): Fault {
  return makeFault('option-too-long', { name, longest: LIMITS.contextTextCharacters })
}

/** One reference per line, or the JSON array itself, for roles, canonicals and identifiers. */
function readItems(text: string): unknown {
  if (text.trimStart().startsWith('[')) return parseLimited(text)
  const lines = text.split(/[\r\n]+/).map(line => line.trim())
  return lines.filter(line => line !== '').map(reference => ({ reference }))
}

/** The launch context except patient, encounter and banner (SMART 2.2, launch context). */
export interface ExtraContext {
  readonly intent?: string
  readonly tenant?: string
  readonly fhirContext?: readonly FhirContextItem[]
  /** From the card of a CDS service that launched the app (CDS Hooks 2.0, link). */
  readonly appContext?: string
  /** An extension for first-party apps: another patient has a similar name. It says nothing about that patient. */
  readonly similar_name?: true
}

export function makeExtraContext(
  intent: string | undefined,
  tenant: string | undefined,
  fhirContext: readonly FhirContextItem[],
): ExtraContext {
  return {
    ...(intent === undefined ? {} : { intent }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(fhirContext.length === 0 ? {} : { fhirContext }),
  }
}

/** Another resource in context. It has a `reference`, a `canonical` or an `identifier`. */
export interface FhirContextItem {
  readonly reference?: string
  readonly canonical?: string
  readonly identifier?: Readonly<Record<string, unknown>>
  readonly type?: string
  readonly role?: string
}

const MEMBERS: ReadonlySet<string> = new Set(['reference', 'canonical', 'identifier', 'type', 'role'])

export function readFhirContext(value: unknown): readonly FhirContextItem[] | Fault {
  if (!Array.isArray(value) || value.length > LIMITS.fhirContextItems)
    return makeFault('fhir-context-malformed', { most: LIMITS.fhirContextItems })
  for (const item of value) {
    const fault = isRecord(item) ? findFault(item) : makeFault('fhir-context-item-malformed')
    if (fault) return fault
  }
  // It is stored with the launch and sent with every token.
  return JSON.stringify(value).length > LIMITS.fhirContextCharacters
    ? makeFault('fhir-context-too-long', { longest: LIMITS.fhirContextCharacters })
    : value
}

/** For `intent` and `tenant`. */
export function isShortText(value: unknown): value is string {
  return typeof value === 'string' && isPlainLine(value, LIMITS.contextTextCharacters)
}

type Item = Readonly<Record<string, unknown>>

function findFault(item: Item): Fault | undefined {
  return findMemberFault(item) ?? findMeaningFault(item)
}

function findMemberFault(item: Item): Fault | undefined {
  const { reference, canonical, identifier, type, role } = item
  const unknown = Object.keys(item).find(name => !MEMBERS.has(name))
  if (unknown !== undefined)
    return makeFault('fhir-context-member-unknown', { name: JSON.stringify(unknown.slice(0, 40)) })
  if (reference === undefined && canonical === undefined && identifier === undefined)
    return makeFault('fhir-context-item-empty')
  if (canonical !== undefined && !isAbsoluteUrl(canonical))
    return makeFault('fhir-context-canonical-malformed')
  if (identifier !== undefined && !isRecord(identifier)) return makeFault('fhir-context-identifier-malformed')
  if (type !== undefined && !(typeof type === 'string' && isResourceType(type)))
    return makeFault('fhir-context-type-unknown')
  // SMART 2.2: without a role it is `launch`; other roles are absolute URLs.
  if (role !== undefined && role !== 'launch' && !isAbsoluteUrl(role))
    return makeFault('fhir-context-role-malformed')
  return undefined
}

function findMeaningFault({ reference, type, role = 'launch' }: Item): Fault | undefined {
  const referred = readReferenceType(reference)
  if (reference !== undefined && referred === undefined) return makeFault('fhir-context-reference-malformed')
  if (type !== undefined && referred !== undefined && type !== referred)
    return makeFault('fhir-context-type-differs')
  const about = referred ?? type
  if (role === 'launch' && (about === 'Patient' || about === 'Encounter'))
    return makeFault('fhir-context-of-the-launch', { type: about })
  return undefined
}

function readReferenceType(reference: unknown): string | undefined {
  const [type = '', id = '', ...rest] = typeof reference === 'string' ? reference.split('/') : []
  return rest.length === 0 && isResourceType(type) && isId(id) ? type : undefined
}

function isAbsoluteUrl(value: unknown): boolean {
  return typeof value === 'string' && value.length <= LIMITS.fhirContextUrlCharacters && URL.canParse(value)
}

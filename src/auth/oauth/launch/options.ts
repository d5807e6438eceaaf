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
export interface FormFault extends Failed {
  readonly reason: 'launch-option-invalid' | 'launch-encounter-missing'
  readonly field: OptionField | 'encounterId'
  readonly text: string
}

export const NO_CHOICE: FormFault = fail({
  reason: 'launch-encounter-missing',
  field: 'encounterId',
  text: 'Choose an encounter, or “No encounter”.',
})

function makeFormFault(field: OptionField, text: string): FormFault {
  return fail({ reason: 'launch-option-invalid', field, text })
}

/** The encounter of a form. Empty for "No encounter", which is not the same as no choice. */
export function readEncounterChoice(body: unknown): string | undefined {
  return isRecord(body) && typeof body.encounterId === 'string' ? body.encounterId : undefined
}

/** Reads the options of a form, or returns the fault. */
export function readOptions(form: Parameters): LaunchFormOptions | FormFault {
  const banner = form.get('needPatientBanner')
  if (banner !== undefined && banner !== 'true' && banner !== 'false')
    return makeFormFault('needPatientBanner', 'needPatientBanner must be true or false.')
  const intent = form.get('intent')?.trim() || undefined
  const tenant = form.get('tenant')?.trim() || undefined
  if (intent !== undefined && !isShortText(intent))
    return makeFormFault('intent', `The intent is ${TOO_LONG}`)
  if (tenant !== undefined && !isShortText(tenant))
    return makeFormFault('tenant', `The tenant is ${TOO_LONG}`)
  const fhirContext = readFhirContext(readItems(form.get('fhirContext') ?? ''))
  if (isFailure(fhirContext)) return makeFormFault('fhirContext', `${capitalize(fhirContext.text)}.`)
  return {
    needPatientBanner: banner === undefined ? undefined : banner === 'true',
    extraContext: makeExtraContext(intent, tenant, fhirContext),
  }
}

const TOO_LONG = `longer than ${LIMITS.contextTextCharacters} characters.`

function capitalize(text: string): string {
  return text.startsWith('fhirContext') ? text : text.charAt(0).toUpperCase() + text.slice(1)
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
    return makeFault(`fhirContext must be an array of at most ${LIMITS.fhirContextItems} objects`)
  for (const item of value) {
    const fault = isRecord(item) ? findFault(item) : 'each item of fhirContext must be an object'
    if (fault !== undefined) return makeFault(fault)
  }
  // It is stored with the launch and sent with every token.
  return JSON.stringify(value).length > LIMITS.fhirContextCharacters
    ? makeFault(`fhirContext must be at most ${LIMITS.fhirContextCharacters} characters of JSON`)
    : value
}

/** For `intent` and `tenant`. */
export function isShortText(value: unknown): value is string {
  return typeof value === 'string' && isPlainLine(value, LIMITS.contextTextCharacters)
}

type Item = Readonly<Record<string, unknown>>

function findFault(item: Item): string | undefined {
  return findMemberFault(item) ?? findMeaningFault(item)
}

function findMemberFault(item: Item): string | undefined {
  const { reference, canonical, identifier, type, role } = item
  const unknown = Object.keys(item).find(name => !MEMBERS.has(name))
  if (unknown !== undefined) return `fhirContext has no member ${JSON.stringify(unknown.slice(0, 40))}`
  if (reference === undefined && canonical === undefined && identifier === undefined)
    return 'each item of fhirContext needs a reference, a canonical or an identifier'
  if (canonical !== undefined && !isAbsoluteUrl(canonical))
    return 'a canonical of fhirContext must be an absolute URL'
  if (identifier !== undefined && !isRecord(identifier))
    return 'an identifier of fhirContext must be an object'
  if (type !== undefined && !(typeof type === 'string' && isResourceType(type)))
    return 'a type of fhirContext must be a resource type'
  // SMART 2.2: without a role it is `launch`; other roles are absolute URLs.
  if (role !== undefined && role !== 'launch' && !isAbsoluteUrl(role))
    return 'a role of fhirContext must be "launch" or an absolute URL'
  return undefined
}

function findMeaningFault({ reference, type, role = 'launch' }: Item): string | undefined {
  const referred = readReferenceType(reference)
  if (reference !== undefined && referred === undefined)
    return 'a reference of fhirContext must be relative, such as ImagingStudy/123'
  if (type !== undefined && referred !== undefined && type !== referred)
    return 'a type of fhirContext must be that of its reference'
  const about = referred ?? type
  if (role === 'launch' && (about === 'Patient' || about === 'Encounter'))
    return `${about} has its own member and may be in fhirContext only with a role other than launch`
  return undefined
}

function readReferenceType(reference: unknown): string | undefined {
  const [type = '', id = '', ...rest] = typeof reference === 'string' ? reference.split('/') : []
  return rest.length === 0 && isResourceType(type) && isId(id) ? type : undefined
}

function isAbsoluteUrl(value: unknown): boolean {
  return typeof value === 'string' && value.length <= LIMITS.fhirContextUrlCharacters && URL.canParse(value)
}

import type { StructureSource } from './structures.ts'

interface Concept {
  readonly code: string
  readonly concept?: readonly Concept[]
}

interface CodeSystemSource {
  readonly url: string
  readonly content?: string
  readonly concept?: readonly Concept[]
}

interface Inclusion {
  readonly system?: string
  readonly concept?: readonly Concept[]
  readonly filter?: readonly unknown[]
  readonly valueSet?: readonly string[]
}

interface ValueSetSource {
  readonly url: string
  readonly compose?: { readonly include: readonly Inclusion[]; readonly exclude?: readonly Inclusion[] }
}

export interface Terminology {
  readonly codeSystems: ReadonlyMap<string, CodeSystemSource>
  readonly valueSets: ReadonlyMap<string, ValueSetSource>
}

/** The codes of each system: `[[system, code, code, …], …]`. */
export type CompiledCodes = readonly (readonly string[])[]

/** Value sets that an element must take its code from. */
export function listRequiredBindings(structures: readonly StructureSource[]): string[] {
  const urls = structures
    .flatMap(it => it.snapshot.element)
    .filter(it => it.binding?.strength === 'required')
    .map(it => (it.binding?.valueSet ?? '').replace(/\|.*$/, ''))
  return [...new Set(urls)].toSorted()
}

// ISO 4217, which R4 refers to without listing its codes.
const CURRENCIES =
  'AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF ' +
  'CHE CHF CHW CLF CLP CNY COP COU CRC CUC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GGP GHS GIP ' +
  'GMD GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS IMP INR IQD IRR ISK JEP JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD ' +
  'KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD ' +
  'OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS SPL SRD SSP STN SVC ' +
  'SYP SZL THB TJS TMT TND TOP TRY TTD TVD TWD TZS UAH UGX USD USN UYI UYU UZS VEF VES VND VUV WST XAF XAG XAU XBA ' +
  'XBB XBC XBD XCD XDR XOF XPD XPF XPT XSU XTS XUA XXX YER ZAR ZMW ZWL'

/** Undefined if the definitions do not list the codes (media types, UCUM). */
export function compileCodes(url: string, terminology: Terminology): CompiledCodes | undefined {
  if (url === 'http://hl7.org/fhir/ValueSet/currencies')
    return [['urn:iso:std:iso:4217', ...CURRENCIES.split(' ')]]
  const compose = terminology.valueSets.get(url)?.compose
  if (compose === undefined || compose.exclude !== undefined) return undefined
  const groups = compose.include.map(it => compileInclusion(it, terminology))
  return groups.every(it => it !== undefined) ? groups.flat() : undefined
}

function compileInclusion(inclusion: Inclusion, terminology: Terminology): CompiledCodes | undefined {
  if (inclusion.filter !== undefined) return undefined
  if (inclusion.valueSet !== undefined) return codesOfValueSets(inclusion, terminology)
  if (inclusion.system === undefined) return undefined
  if (inclusion.concept !== undefined) return [[inclusion.system, ...inclusion.concept.map(it => it.code)]]
  const system = terminology.codeSystems.get(inclusion.system)
  if (system?.content !== 'complete' || system.concept === undefined) return undefined
  return [[inclusion.system, ...flatten(system.concept)]]
}

function codesOfValueSets(inclusion: Inclusion, terminology: Terminology): CompiledCodes | undefined {
  if (inclusion.system !== undefined || inclusion.valueSet?.length !== 1) return undefined
  return compileCodes(inclusion.valueSet[0]?.replace(/\|.*$/, '') ?? '', terminology)
}

function flatten(concepts: readonly Concept[]): string[] {
  return concepts.flatMap(it => [it.code, ...flatten(it.concept ?? [])])
}

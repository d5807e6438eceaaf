import type { CodeableConcept } from '../records/resources.ts'

const SYSTEMS: Readonly<Record<string, string>> = {
  'http://snomed.info/sct': 'SNOMED CT',
  'http://loinc.org': 'LOINC',
  'http://www.nlm.nih.gov/research/umls/rxnorm': 'RxNorm',
  'http://hl7.org/fhir/sid/icd-10': 'ICD-10',
  'http://hl7.org/fhir/sid/icd-10-cm': 'ICD-10-CM',
}

/** What a concept is called: as it was written, else by its code's own name. */
export function formatConcept(concept: CodeableConcept | undefined): string | undefined {
  const named = concept?.coding?.find(({ display }) => display !== undefined)
  const text = concept?.text ?? named?.display ?? concept?.coding?.[0]?.code
  return text === undefined || text.trim() === '' ? undefined : text.trim()
}

/** `SNOMED CT 49436004`: the exact code, for whoever needs it. */
export function formatCode(concept: CodeableConcept | undefined): string | undefined {
  const coding = concept?.coding?.find(({ code, system }) => code !== undefined && system !== undefined)
  const system = coding?.system === undefined ? undefined : SYSTEMS[coding.system]
  return system === undefined ? undefined : `${system} ${coding?.code}`
}

/** The code of a concept in one system. */
export function findCode(concept: CodeableConcept | undefined, system: string): string | undefined {
  return concept?.coding?.find(coding => coding.system === system)?.code
}

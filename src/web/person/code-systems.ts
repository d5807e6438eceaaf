import { findOwn } from '../../core/index.ts'

/** Each name stands for one URL. */
const NAMES: Readonly<Record<string, string>> = {
  'http://snomed.info/sct': 'SNOMED CT',
  'http://loinc.org': 'LOINC',
  'http://unitsofmeasure.org': 'UCUM',
  'http://www.nlm.nih.gov/research/umls/rxnorm': 'RxNorm',
  'http://hl7.org/fhir/sid/cvx': 'CVX',
  'http://hl7.org/fhir/sid/icd-10': 'ICD-10',
  'http://hl7.org/fhir/sid/icd-10-cm': 'ICD-10-CM',
}

/** The name by which people know a code system. */
export function nameCodeSystem(url: unknown): string | undefined {
  return typeof url === 'string' ? findOwn(NAMES, url) : undefined
}

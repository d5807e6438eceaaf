import type { CodeableConcept, Reference } from 'fhir/r4.js'

export const systems = {
  snomed: 'http://snomed.info/sct',
  loinc: 'http://loinc.org',
  rxnorm: 'http://www.nlm.nih.gov/research/umls/rxnorm',
  cvx: 'http://hl7.org/fhir/sid/cvx',
  icd10: 'http://hl7.org/fhir/sid/icd-10-cm',
  ucum: 'http://unitsofmeasure.org',
  actReason: 'http://terminology.hl7.org/CodeSystem/v3-ActReason',
  actCode: 'http://terminology.hl7.org/CodeSystem/v3-ActCode',
  roleCode: 'http://terminology.hl7.org/CodeSystem/v3-RoleCode',
  participation: 'http://terminology.hl7.org/CodeSystem/v3-ParticipationType',
  interpretation: 'http://terminology.hl7.org/CodeSystem/v3-ObservationInterpretation',
  observationCategory: 'http://terminology.hl7.org/CodeSystem/observation-category',
  conditionCategory: 'http://terminology.hl7.org/CodeSystem/condition-category',
  usCoreConditionCategory: 'http://hl7.org/fhir/us/core/CodeSystem/condition-category',
  conditionClinical: 'http://terminology.hl7.org/CodeSystem/condition-clinical',
  conditionVerification: 'http://terminology.hl7.org/CodeSystem/condition-ver-status',
  allergyClinical: 'http://terminology.hl7.org/CodeSystem/allergyintolerance-clinical',
  allergyVerification: 'http://terminology.hl7.org/CodeSystem/allergyintolerance-verification',
  diagnosticService: 'http://terminology.hl7.org/CodeSystem/v2-0074',
  identifierType: 'http://terminology.hl7.org/CodeSystem/v2-0203',
  maritalStatus: 'http://terminology.hl7.org/CodeSystem/v3-MaritalStatus',
  medicationRequestCategory: 'http://terminology.hl7.org/CodeSystem/medicationrequest-category',
  organizationType: 'http://terminology.hl7.org/CodeSystem/organization-type',
  language: 'urn:ietf:bcp:47',
  mrn: 'https://hospital.example.org/mrn',
  staff: 'https://hospital.example.org/staff',
} as const

export function concept(system: string, code: string, display: string, text = display): CodeableConcept {
  return { coding: [{ system, code, display }], text }
}

/** A concept that needs no words of its own: status and category codes. */
export function coded(system: string, code: string, display?: string): CodeableConcept {
  return { coding: [display === undefined ? { system, code } : { system, code, display }] }
}

export function reference(type: string, id: string, display?: string): Reference {
  return display === undefined ? { reference: `${type}/${id}` } : { reference: `${type}/${id}`, display }
}

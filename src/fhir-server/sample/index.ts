/**
 * Sample patients: invented people with coherent histories, made from a seed (engines.md, "Sample patients"). It only
 * makes resources; it neither validates nor stores them, and knows nothing of HTTP. `catalogue/` holds what is known
 * (codes, doses, schedules) as tables, the files beside it decide what happened to whom, `records/` writes it as FHIR.
 */
export { type SampleOptions, samplePatients } from './sample-patients.ts'

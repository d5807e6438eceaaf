/**
 * Sample patients: invented people with coherent histories, recorded as NDJSON. Only the first start of the embedded server and
 * the tests use them. `hospital.ndjson` has what all patients share, `patients.ndjson` each patient before the resources about them, and
 * `us-core.ndjson` the last two in the same way: together they have every must-support element of US Core 7.0.0.
 */
export { samplePatients } from './sample-patients.ts'

/**
 * The component beside the interceptor (service.md 5.2): which part of a type a grant reaches, by patient
 * compartment, granular query and the user's own rights. Pure; it refuses nothing itself and reads no store.
 */
export { type Access, fullAccess, type Limit, type Reach } from './reach.ts'

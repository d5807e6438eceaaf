/**
 * The component beside the interceptor (service.md 5.2): which part of a type a grant reaches, by patient
 * compartment, granular query and the user's own rights. Pure; it refuses nothing itself and reads no store.
 */
export { accessOf, type GrantedAccess, isClinician, type Part, type Reached } from './access-of.ts'
export { conveys } from './document.ts'
export { type Grant, PORTAL_CLIENT, type Policy } from './grant.ts'
export type { Admitted, Guard, TurnedAway } from './guard.ts'
export { hiddenProblem, updateConflict } from './hidden.ts'
export { holderOf } from './holder-of.ts'
export { isWithin, isWritable } from './is-within.ts'
export { digestOf, type Judged, type JudgedBefore, judgedBefore } from './judged-before.ts'
export { groupLimits, isEverything, type LimitGroup } from './limit.ts'
export { patchProblem } from './patch-problem.ts'
export { hasCompartment } from './patient-reach.ts'
export { type Access, fullAccess, type Limit, noAccess, type Reach, type VersionAccess } from './reach.ts'
export { isOfNamedOnly, type Panel, type Roster, type RosterOf } from './rights/panel.ts'
export { type BadRights, readRights } from './rights/read-rights.ts'
export type { Rights } from './rights/rights.ts'
export { rightsReach } from './rights/rights-reach.ts'
export { tellsAbsence } from './tells-absence.ts'

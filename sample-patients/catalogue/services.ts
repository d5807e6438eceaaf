import type { LocationKey, StaffKey } from './staff.ts'

/** A kind of encounter: what it is called, its class (v3-ActCode), its SNOMED CT type, who sees the patient and where. */
export interface ServiceEntry {
  readonly text: string
  readonly class: EncounterClass
  readonly type: EncounterType
  readonly staff: readonly [StaffKey, ...StaffKey[]]
  readonly location: LocationKey
  /** How long it takes, in minutes. */
  readonly minutes: readonly [number, number]
}

export const encounterClasses = {
  AMB: 'ambulatory',
  EMER: 'emergency',
  IMP: 'inpatient encounter',
  VR: 'virtual',
  HH: 'home health',
} as const satisfies Record<string, string>

export type EncounterClass = keyof typeof encounterClasses

export const encounterTypes = {
  checkUp: ['185349003', 'Encounter for check up'],
  followUp: ['390906007', 'Follow-up encounter'],
  problem: ['185347001', 'Encounter for problem'],
  emergency: ['50849002', 'Emergency room admission'],
  admission: ['32485007', 'Hospital admission'],
  wellChild: ['410620009', 'Well child visit'],
  telemedicine: ['448337001', 'Telemedicine consultation with patient'],
  home: ['439708006', 'Home visit'],
} as const satisfies Record<string, readonly [code: string, display: string]>

export type EncounterType = keyof typeof encounterTypes

export const services = {
  annual: clinic('Annual check-up', 'checkUp', ['valcourt'], [20, 40]),
  family: clinic('Family medicine visit', 'problem', ['valcourt'], [10, 25]),
  bloodPressure: clinic('Blood pressure check', 'followUp', ['okoro'], [10, 15]),
  cardiology: clinic('Cardiology clinic', 'followUp', ['ahmadi'], [20, 45]),
  diabetes: clinic('Diabetes clinic', 'followUp', ['tanabe', 'okoro'], [20, 40]),
  respiratory: clinic('Respiratory clinic', 'followUp', ['mensah'], [20, 40]),
  mentalHealth: clinic('Mental health clinic', 'followUp', ['haddad'], [30, 60]),
  memory: clinic('Memory clinic', 'followUp', ['donnelly'], [30, 60]),
  oncology: clinic('Oncology clinic', 'followUp', ['saarela'], [20, 40]),
  specialist: clinic('Internal medicine clinic', 'followUp', ['donnelly', 'valcourt'], [20, 40]),
  antenatal: { ...clinic('Antenatal clinic', 'checkUp', ['adeyinka'], [20, 40]), location: 'maternity' },
  wellChild: { ...clinic('Well child visit', 'wellChild', ['lindqvist'], [20, 35]), location: 'children' },
  children: { ...clinic('Children’s clinic', 'problem', ['lindqvist'], [15, 30]), location: 'children' },
  video: { ...clinic('Video consultation', 'telemedicine', ['valcourt'], [10, 20]), class: 'VR' },
  home: { ...clinic('Home visit', 'home', ['okoro', 'donnelly'], [20, 45]), class: 'HH' },
  emergency: {
    text: 'Emergency department',
    class: 'EMER',
    type: 'emergency',
    staff: ['quill'],
    location: 'emergency',
    minutes: [90, 540],
  },
  ward: {
    text: 'Medical ward',
    class: 'IMP',
    type: 'admission',
    staff: ['donnelly'],
    location: 'medical',
    minutes: [2 * 1440, 7 * 1440],
  },
  surgery: {
    text: 'Surgical ward',
    class: 'IMP',
    type: 'admission',
    staff: ['saarela'],
    location: 'surgical',
    minutes: [1440, 4 * 1440],
  },
  newborn: {
    text: 'Newborn unit',
    class: 'IMP',
    type: 'admission',
    staff: ['lindqvist'],
    location: 'maternity',
    minutes: [2 * 1440, 3 * 1440],
  },
} as const satisfies Record<string, ServiceEntry>

export type ServiceKey = keyof typeof services

function clinic(
  text: string,
  type: EncounterType,
  by: ServiceEntry['staff'],
  minutes: ServiceEntry['minutes'],
): ServiceEntry {
  return { text, class: 'AMB', type, staff: by, location: 'clinic', minutes }
}

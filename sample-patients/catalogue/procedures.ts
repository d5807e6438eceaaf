/** Procedures by SNOMED CT code and name. */
export const procedures = {
  electrocardiogram: ['29303009', 'Electrocardiographic procedure'],
  echocardiogram: ['40701008', 'Echocardiography'],
  chestXray: ['399208008', 'Plain X-ray of chest'],
  spirometry: ['127783003', 'Spirometry'],
  colonoscopy: ['73761001', 'Colonoscopy'],
  mammography: ['71651007', 'Mammography'],
  boneDensity: ['312681000', 'Bone density scan'],
  footExamination: ['401191002', 'Diabetic foot examination'],
  polysomnography: ['60554003', 'Polysomnography'],
  electroencephalogram: ['54550000', 'Electroencephalogram'],
  depressionScreening: ['171207006', 'Depression screening'],
  appendectomy: ['80146002', 'Appendectomy'],
  kneeReplacement: ['609588000', 'Total replacement of knee joint'],
  coronaryIntervention: ['415070008', 'Percutaneous coronary intervention'],
  cataractExtraction: ['54885007', 'Extraction of cataract'],
  woundSuture: ['288086009', 'Suture open wound'],
  boneImmobilization: ['274474001', 'Bone immobilization'],
} as const satisfies Record<string, readonly [code: string, display: string]>

export type ProcedureKey = keyof typeof procedures

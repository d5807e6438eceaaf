import { constants } from 'node:crypto'
import type { SecureContextOptions } from 'node:tls'

/** The AEAD suites with forward secrecy that BCP 195 (RFC 9325, 4.2) recommends; those of TLS 1.3 first. */
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
]

/** TLS as BCP 195 has it (RFC 9325): from TLS 1.2 on, AEAD suites only, and no renegotiation. */
export const TLS_POLICY: SecureContextOptions = {
  minVersion: 'TLSv1.2',
  ciphers: CIPHERS.join(':'),
  honorCipherOrder: true,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
}

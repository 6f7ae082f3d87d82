# SPDX-License-Identifier: MIT
# hello.js for Rack: thin start -R hello.ru; with SINATRA=1 by way of Sinatra.
if ENV['SINATRA']
  require 'sinatra/base'
  class Hello < Sinatra::Base
    set :environment, :production
    get('/') do
      content_type 'text/plain'
      'Hello, world!'
    end
  end
  run Hello
else
  run proc { [200, { 'Content-Type' => 'text/plain', 'Content-Length' => '13' }, ['Hello, world!']] }
end
